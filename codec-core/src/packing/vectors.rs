//! The same loop compiled for several vector widths, of which the machine's widest runs.

/// A loop that the compiler can turn into vector instructions.
pub trait Kernel {
    /// What it leaves.
    type Output;

    /// The loop. Implement it with `#[inline(always)]`, so that it becomes part of each of the functions below and is compiled with their instructions.
    fn run(self) -> Self::Output;
}

/// Runs `kernel` with the widest vectors that this machine has.
pub fn run<K: Kernel>(kernel: K) -> K::Output {
    #[cfg(target_arch = "x86_64")]
    {
        if is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512bw")
            && is_x86_feature_detected!("avx512dq")
            && is_x86_feature_detected!("avx512vl")
        {
            // SAFETY: these four were detected just now.
            return unsafe { run_avx512(kernel) };
        }
        if is_x86_feature_detected!("avx2") {
            // SAFETY: detected just now.
            return unsafe { run_avx2(kernel) };
        }
    }
    kernel.run()
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
fn run_avx512<K: Kernel>(kernel: K) -> K::Output {
    kernel.run()
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn run_avx2<K: Kernel>(kernel: K) -> K::Output {
    kernel.run()
}
