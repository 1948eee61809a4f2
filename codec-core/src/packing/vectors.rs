//! The same loop compiled for several vector widths, of which the machine's widest runs. For codecs, too: all of it is safe to use.

/// A loop that the compiler can turn into vector instructions.
pub trait Kernel {
    /// What it leaves.
    type Output;

    /// The loop. Implement it with `#[inline(always)]`, so that it becomes part of each of the functions below and is compiled with their instructions.
    fn run(self) -> Self::Output;
}

/// Vector instructions beyond what every machine of the target has, from few to many.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Level {
    /// None beyond.
    Target,
    /// 256 bits.
    #[cfg(target_arch = "x86_64")]
    Avx2,
    /// 512 bits, and the instructions of the first servers that had them.
    #[cfg(target_arch = "x86_64")]
    Avx512,
}

/// Runs `kernel` with the widest vectors that this machine has.
pub fn run<K: Kernel>(kernel: K) -> K::Output {
    match level() {
        Level::Target => kernel.run(),
        // SAFETY: `level` gives no level but those whose instructions it has detected.
        #[cfg(target_arch = "x86_64")]
        Level::Avx2 => unsafe { run_avx2(kernel) },
        // SAFETY: as above.
        #[cfg(target_arch = "x86_64")]
        Level::Avx512 => unsafe { run_avx512(kernel) },
    }
}

/// The highest level of this machine. The standard library detects it once and keeps it.
#[inline]
fn level() -> Level {
    let highest = detected();
    #[cfg(test)]
    let highest = tests::LIMIT.get().map_or(highest, |limit| limit.min(highest));
    highest
}

#[cfg(not(target_arch = "x86_64"))]
fn detected() -> Level {
    Level::Target
}

#[cfg(target_arch = "x86_64")]
#[inline]
fn detected() -> Level {
    // Machines with AVX2 have had BMI2, whose shifts need no fixed register, from the first on; asked for all the same.
    if !is_x86_feature_detected!("avx2") || !is_x86_feature_detected!("bmi2") {
        Level::Target
    } else if is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("avx512dq")
        && is_x86_feature_detected!("avx512vl")
    {
        Level::Avx512
    } else {
        Level::Avx2
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,bmi2")]
fn run_avx2<K: Kernel>(kernel: K) -> K::Output {
    kernel.run()
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,bmi2,avx512f,avx512bw,avx512dq,avx512vl")]
fn run_avx512<K: Kernel>(kernel: K) -> K::Output {
    kernel.run()
}

#[cfg(test)]
pub(crate) mod tests {
    use std::cell::Cell;

    use super::*;

    thread_local! {
        /// The level that kernels of this thread do not exceed.
        pub(super) static LIMIT: Cell<Option<Level>> = const { Cell::new(None) };
    }

    /// Runs `test` once with the vectors of each level that this machine has.
    pub(crate) fn at_every_level(test: impl Fn()) {
        #[cfg(target_arch = "x86_64")]
        for level in [Level::Target, Level::Avx2, Level::Avx512] {
            LIMIT.set(Some(level));
            test();
        }
        LIMIT.set(None);
        test();
    }
}
