//! A compiled program on a device: found in memory, on disk or made by NVRTC, in this order.

use std::sync::Arc;
use std::time::Instant;

use cudarc::driver::{CudaFunction, CudaModule, DeviceRepr, LaunchConfig, PushKernelArg, sys};
use cudarc::nvrtc::Ptx;

use crate::column::ColumnView;
use crate::encode::EncodeJob;
use crate::nvrtc::Nvrtc;
use crate::{Device, GpuError, cache};

/// A program loaded on a device.
#[derive(Debug, Clone)]
pub struct Program {
    module: Arc<CudaModule>,
    origin: Origin,
    milliseconds: f64,
}

/// Where a program's cubin came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
pub enum Origin {
    /// Compiled by NVRTC.
    Compiled,
    /// Read from the cache on disk.
    Disk,
}

/// A kernel of a program.
#[derive(Debug, Clone)]
pub struct Kernel {
    device: Device,
    function: CudaFunction,
    added_shared_bytes: u32,
}

/// What a kernel takes of a multiprocessor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
pub struct Resources {
    /// Registers a thread.
    pub registers: u32,
    /// Bytes of local memory a thread: spilled registers and indexed arrays.
    pub local_bytes: u32,
    /// Bytes of shared memory a thread block.
    pub shared_bytes: u32,
    /// Thread blocks of the asked size that a multiprocessor holds at a time.
    pub blocks_per_multiprocessor: u32,
}

/// A kernel's one parameter where that is a structure of `u64` words.
#[derive(Debug, Clone)]
#[repr(transparent)]
pub struct Words([u64; Self::CAPACITY]);

impl Words {
    /// Words that fit into a kernel's parameters.
    pub const CAPACITY: usize = 512;

    /// These words, then zeros; `None` where there are too many.
    #[must_use]
    pub fn new(words: &[u64]) -> Option<Self> {
        let mut all = [0; Self::CAPACITY];
        all.get_mut(..words.len())?.copy_from_slice(words);
        Some(Self(all))
    }
}

/// An argument of a kernel.
#[derive(Debug, Clone, Copy)]
pub enum Argument<'a> {
    /// A pointer: a device address.
    Address(u64),
    /// `u64`.
    U64(u64),
    /// `u32`.
    U32(u32),
    /// `cb2t::ColumnView`.
    Column(ColumnView),
    /// `cb2t::EncodeJob`.
    EncodeJob(EncodeJob),
    /// A structure of at most [`Words::CAPACITY`] words, of which the driver reads as many as the kernel declares.
    Words(&'a Words),
}

impl Device {
    /// The program of `source`, compiled with `options` for this device, unless it was already.
    ///
    /// # Errors
    /// No NVRTC, source that it refuses, or a cubin that the driver refuses.
    pub fn program(&self, source: &str, options: &[String]) -> Result<Program, GpuError> {
        let architecture = self.architecture();
        let start = Instant::now();
        let key = cache::key(source, &architecture, options);
        if let Some(program) = self.known().get(&key) {
            return Ok(program.clone());
        }
        let (cubin, origin) = match cache::read(&key) {
            Some(cubin) => (cubin, Origin::Disk),
            // Looked for only here: finding and loading the compiler takes longer than everything else on the way from the disk.
            None => (Nvrtc::load()?.compile(source, &architecture, options)?.cubin, Origin::Compiled),
        };
        if origin == Origin::Compiled {
            cache::write(&key, &cubin);
        }
        let module = self
            .context
            .load_module(Ptx::from_binary(cubin))
            .map_err(GpuError::driver("loading a program"))?;
        let program = Program { module, origin, milliseconds: start.elapsed().as_secs_f64() * 1e3 };
        self.known().insert(key, program.clone());
        Ok(program)
    }

    fn known(&self) -> std::sync::MutexGuard<'_, std::collections::HashMap<String, Program>> {
        self.programs.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

impl Program {
    /// Where it came from when it was loaded first.
    #[must_use]
    pub fn origin(&self) -> Origin {
        self.origin
    }

    /// Milliseconds that finding or compiling and loading it took.
    #[must_use]
    pub fn milliseconds(&self) -> f64 {
        self.milliseconds
    }

    /// The kernel with this name.
    ///
    /// # Errors
    /// The program has none.
    pub fn kernel(&self, device: &Device, name: &str) -> Result<Kernel, GpuError> {
        if name.contains('\0') {
            return Err(GpuError::Driver {
                what: "finding a kernel",
                message: "its name has a zero byte".to_owned(),
            });
        }
        let driver = GpuError::driver("finding a kernel");
        device.context.bind_to_thread().map_err(&driver)?;
        let function = self.module.load_function(name).map_err(driver)?;
        Ok(Kernel { device: device.clone(), function, added_shared_bytes: 0 })
    }
}

impl Kernel {
    /// The kernel, of which every launch adds `bytes` of shared memory to what it declares.
    ///
    /// # Errors
    /// More than the device has for a thread block.
    pub fn with_added_shared_memory(mut self, bytes: u32) -> Result<Self, GpuError> {
        let driver = GpuError::driver("adding shared memory to a kernel");
        self.device.context.bind_to_thread().map_err(&driver)?;
        let attribute = sys::CUfunction_attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
        let wanted = i32::try_from(bytes).unwrap_or(i32::MAX);
        self.function.set_attribute(attribute, wanted).map_err(driver)?;
        self.added_shared_bytes = bytes;
        Ok(self)
    }

    /// What it takes of a multiprocessor, in thread blocks of `threads_per_block`.
    ///
    /// # Errors
    /// Of the driver.
    pub fn resources(&self, threads_per_block: u32) -> Result<Resources, GpuError> {
        let driver = GpuError::driver("asking for a kernel's resources");
        self.device.context.bind_to_thread().map_err(&driver)?;
        let number = |attribute: Result<i32, _>| {
            attribute.map(|value| u32::try_from(value).unwrap_or(0)).map_err(&driver)
        };
        Ok(Resources {
            registers: number(self.function.num_regs())?,
            local_bytes: number(self.function.local_size_bytes())?,
            shared_bytes: number(self.function.shared_size_bytes())? + self.added_shared_bytes,
            blocks_per_multiprocessor: self
                .function
                .occupancy_max_active_blocks_per_multiprocessor(
                    threads_per_block,
                    self.added_shared_bytes as usize,
                    None,
                )
                .map_err(&driver)?,
        })
    }

    /// The most threads that a thread block of it can have: what its `__launch_bounds__` say.
    ///
    /// # Errors
    /// Of the driver.
    pub fn most_threads(&self) -> Result<u32, GpuError> {
        let driver = GpuError::driver("asking for a kernel's resources");
        self.device.context.bind_to_thread().map_err(&driver)?;
        let threads = self.function.max_threads_per_block().map_err(driver)?;
        Ok(u32::try_from(threads).unwrap_or(0))
    }

    /// Asks for the largest shared memory that the multiprocessor can split off its first-level cache.
    ///
    /// # Errors
    /// Of the driver.
    pub fn prefer_shared_memory(&self, percent: u32) -> Result<(), GpuError> {
        let attribute = sys::CUfunction_attribute::CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT;
        let percent = i32::try_from(percent).unwrap_or(100);
        self.function
            .set_attribute(attribute, percent)
            .map_err(GpuError::driver("splitting the first-level cache"))
    }

    /// Enqueues the kernel on its device's queue.
    ///
    /// # Safety
    /// As [`Kernel::launch_on`].
    ///
    /// # Errors
    /// As [`Kernel::launch_on`].
    pub unsafe fn launch(
        &self,
        thread_blocks: u32,
        threads_per_block: u32,
        arguments: &[Argument<'_>],
    ) -> Result<(), GpuError> {
        // SAFETY: the caller's promise.
        unsafe { self.launch_on(&self.device, thread_blocks, threads_per_block, arguments) }
    }

    /// Enqueues the kernel on `queue`: its device, or a fork of it that the device will join.
    ///
    /// # Safety
    /// `arguments` are the kernel's parameters in order and type; what it reads and writes through them lies in living allocations of this device, and stays there until the
    /// device has been synchronized (dropping [`crate::DeviceMemory`] does that).
    ///
    /// # Errors
    /// A launch that the driver refuses. Errors within the kernel come with the next synchronization.
    pub unsafe fn launch_on(
        &self,
        queue: &Device,
        thread_blocks: u32,
        threads_per_block: u32,
        arguments: &[Argument<'_>],
    ) -> Result<(), GpuError> {
        let mut launch = queue.stream.launch_builder(&self.function);
        for argument in arguments {
            match argument {
                Argument::Address(value) | Argument::U64(value) => launch.arg(value),
                Argument::U32(value) => launch.arg(value),
                Argument::Column(view) => launch.arg(view),
                Argument::EncodeJob(job) => launch.arg(job),
                Argument::Words(words) => launch.arg(*words),
            };
        }
        let config = LaunchConfig {
            grid_dim: (thread_blocks, 1, 1),
            block_dim: (threads_per_block, 1, 1),
            shared_mem_bytes: self.added_shared_bytes,
        };
        // SAFETY: the caller's promise.
        unsafe { launch.launch(config) }.map(drop).map_err(GpuError::driver("launching a kernel"))
    }
}

// SAFETY: an array of u64 in C layout.
unsafe impl DeviceRepr for Words {}
// SAFETY: three device addresses in C layout, which is what `cb2t::ColumnView` is in cuda/column.cuh.
unsafe impl DeviceRepr for ColumnView {}
