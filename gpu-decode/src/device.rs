//! The devices of this machine.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use cudarc::driver::sys::{self, CUdevice_attribute as Attribute};
use cudarc::driver::{CudaContext, CudaEvent, CudaGraph, CudaStream};

use crate::{GpuError, Program};

/// CUDA 13.0, as the driver counts.
const NEEDED_DRIVER: i32 = 13_000;

/// A GPU with its stream and the programs compiled for it so far. Clones share it.
#[derive(Debug, Clone)]
pub struct Device {
    pub(crate) context: Arc<CudaContext>,
    pub(crate) stream: Arc<CudaStream>,
    info: Arc<DeviceInfo>,
    pub(crate) programs: Arc<Mutex<HashMap<String, Program>>>,
}

/// A point in the device's work, by the device's clock.
#[derive(Debug)]
pub struct DeviceEvent {
    event: CudaEvent,
}

/// Work that was recorded once and runs again as a whole: the host asks for it in one call, and parts that do not wait for each other run side by side.
pub struct Recording {
    graph: CudaGraph,
}

impl std::fmt::Debug for Recording {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Recording").finish_non_exhaustive()
    }
}

// SAFETY: a graph must not be used by two threads at a time. It is used through `&mut self` alone, and dropped by whoever owns it; both bind the context to their thread.
unsafe impl Send for Recording {}
// SAFETY: a shared reference gives no access to the graph.
unsafe impl Sync for Recording {}

impl Recording {
    /// Enqueues the work once more.
    ///
    /// # Safety
    /// What the recorded kernels and fills read and write lies in living allocations of the device, and stays there until it has been synchronized.
    ///
    /// # Errors
    /// Of the driver.
    pub unsafe fn launch(&mut self) -> Result<(), GpuError> {
        self.graph.launch().map_err(GpuError::driver("launching recorded work"))
    }
}

impl DeviceEvent {
    /// Milliseconds from this point to `end`. Waits for both.
    ///
    /// # Errors
    /// Whatever went wrong on the device before.
    pub fn milliseconds_until(&self, end: &Self) -> Result<f64, GpuError> {
        let elapsed = self.event.elapsed_ms(&end.event);
        Ok(f64::from(elapsed.map_err(GpuError::driver("timing by events"))?))
    }
}

/// What `cb2t devices` prints about a device.
#[derive(Debug, Clone, serde::Serialize)]
pub struct DeviceInfo {
    /// The device's number, counted from 0.
    pub ordinal: usize,
    /// The product's name.
    pub name: String,
    /// Compute capability, as in 9.0.
    pub compute_capability: (u32, u32),
    /// Multiprocessors.
    pub multiprocessor_count: u32,
    /// Bytes of device memory.
    pub memory_bytes: u64,
    /// Bytes of second-level cache.
    pub l2_bytes: u64,
    /// The highest clock of the multiprocessors in kHz.
    pub clock_khz: u64,
    /// The version of CUDA that the driver supports, 1000 times the major and 10 times the minor.
    pub driver_version: i32,
}

impl Device {
    /// The device with this number.
    ///
    /// # Errors
    /// No driver, one that is too old, or no such device.
    pub fn new(ordinal: usize) -> Result<Self, GpuError> {
        let (driver_version, device_count) = probe()?;
        if ordinal >= device_count {
            return Err(GpuError::NoDevice { ordinal, device_count });
        }
        let driver = GpuError::driver("opening the device");
        let context = CudaContext::new(ordinal).map_err(&driver)?;
        let stream = context.new_stream().map_err(&driver)?;
        let number = |attribute| -> Result<u64, GpuError> {
            let value = context.attribute(attribute).map_err(&driver)?;
            Ok(u64::try_from(value).unwrap_or(0))
        };
        let small = |attribute| number(attribute).map(|value| u32::try_from(value).unwrap_or(u32::MAX));
        let info = DeviceInfo {
            ordinal,
            name: context.name().map_err(&driver)?,
            compute_capability: (
                small(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)?,
                small(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)?,
            ),
            multiprocessor_count: small(Attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)?,
            memory_bytes: context.total_mem().map_err(&driver)? as u64,
            l2_bytes: number(Attribute::CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE)?,
            clock_khz: number(Attribute::CU_DEVICE_ATTRIBUTE_CLOCK_RATE)?,
            driver_version,
        };
        Ok(Self { context, stream, info: Arc::new(info), programs: Arc::default() })
    }

    /// Every device of this machine; none is not an error here.
    ///
    /// # Errors
    /// No driver, one that is too old, or a device that does not open.
    pub fn all() -> Result<Vec<Self>, GpuError> {
        let (_, device_count) = probe()?;
        (0..device_count).map(Self::new).collect()
    }

    /// What the device is.
    #[must_use]
    pub fn info(&self) -> &DeviceInfo {
        &self.info
    }

    /// The architecture to compile for, as in `sm_90`.
    #[must_use]
    pub fn architecture(&self) -> String {
        let (major, minor) = self.info.compute_capability;
        format!("sm_{major}{minor}")
    }

    /// Waits until everything asked of the device is done.
    ///
    /// # Errors
    /// Whatever went wrong in a kernel since the last time.
    pub fn synchronize(&self) -> Result<(), GpuError> {
        self.stream.synchronize().map_err(GpuError::driver("waiting for the device"))
    }

    /// Marks the point that follows everything asked of the device so far.
    ///
    /// # Errors
    /// Of the driver.
    pub fn event(&self) -> Result<DeviceEvent, GpuError> {
        let flags = Some(sys::CUevent_flags::CU_EVENT_DEFAULT);
        let event = self.stream.record_event(flags).map_err(GpuError::driver("timing by events"))?;
        Ok(DeviceEvent { event })
    }

    /// The device with another queue: what is asked of it begins when all that was asked of this one so far is done.
    ///
    /// # Errors
    /// Of the driver.
    pub fn fork(&self) -> Result<Self, GpuError> {
        let stream = self.stream.fork().map_err(GpuError::driver("making a stream"))?;
        Ok(Self { stream, ..self.clone() })
    }

    /// What is asked of this queue from now on begins when all that was asked of `other` so far is done.
    ///
    /// # Errors
    /// Of the driver.
    pub fn join(&self, other: &Self) -> Result<(), GpuError> {
        self.stream.join(&other.stream).map_err(GpuError::driver("waiting for a stream"))
    }

    /// Records what `work` asks of this queue, and of forks that it joins again, instead of doing it. `work` neither waits for the device nor takes or frees its memory.
    ///
    /// # Errors
    /// Those of `work`, or of the driver.
    pub fn record<E: From<GpuError>>(&self, work: impl FnOnce() -> Result<(), E>) -> Result<Recording, E> {
        let driver = GpuError::driver("recording work");
        let mode = sys::CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED;
        self.stream.begin_capture(mode).map_err(&driver)?;
        let worked = work();
        // Ended in any case: the stream would stay in this mode.
        let ended = self.stream.end_capture(sys::CUgraphInstantiate_flags(0));
        worked?;
        let nothing = || GpuError::Driver { what: "recording work", message: "nothing was recorded".into() };
        Ok(Recording { graph: ended.map_err(&driver)?.ok_or_else(nothing)? })
    }

    /// Runs `work` and returns the milliseconds that the device took for what it enqueued.
    ///
    /// # Errors
    /// Those of `work`, or of the device.
    pub fn time(&self, work: impl FnOnce() -> Result<(), GpuError>) -> Result<f64, GpuError> {
        let start = self.event()?;
        work()?;
        start.milliseconds_until(&self.event()?)
    }
}

/// The driver's version and its number of devices. cudarc panics without a driver or at a call that the driver lacks, so this comes before any other call.
fn probe() -> Result<(i32, usize), GpuError> {
    // SAFETY: loads and unloads the driver's library, whose initializers every CUDA program runs.
    if !unsafe { sys::is_culib_present() } {
        return Err(GpuError::NoDriver);
    }
    let mut version = 0;
    // SAFETY: the call exists in every driver, needs no initialization and writes one int to the valid address given.
    let status = unsafe { sys::cuDriverGetVersion(&raw mut version) };
    status.result().map_err(GpuError::driver("asking for the driver's version"))?;
    if version < NEEDED_DRIVER {
        return Err(GpuError::OldDriver { found_major: version / 1000, found_minor: version % 1000 / 10 });
    }
    let count = match CudaContext::device_count() {
        Ok(count) => usize::try_from(count).unwrap_or(0),
        Err(cudarc::driver::DriverError(sys::CUresult::CUDA_ERROR_NO_DEVICE)) => 0,
        Err(error) => return Err(GpuError::driver("counting devices")(error)),
    };
    Ok((version, count))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_driver_or_device_is_an_error_value() {
        match Device::new(9999) {
            Err(GpuError::NoDriver) => assert!(GpuError::NoDriver.to_string().contains("install")),
            Err(GpuError::NoDevice { ordinal, .. }) => assert_eq!(ordinal, 9999),
            Err(other) => assert!(!other.to_string().is_empty()),
            Ok(device) => panic!("device 9999 exists: {:?}", device.info()),
        }
    }
}
