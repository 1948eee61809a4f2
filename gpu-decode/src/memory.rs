//! Device memory by plain allocations, copies, and pinned staging for uploads.

use std::ffi::c_void;
use std::sync::Arc;

use cudarc::driver::{CudaContext, DriverError, result, sys};

use crate::{Device, GpuError};

/// Device memory that is freed when dropped. Only the methods here and kernels reach it.
#[derive(Debug)]
pub struct DeviceMemory {
    device: Device,
    address: u64,
    bytes: usize,
}

impl DeviceMemory {
    /// `bytes` bytes of arbitrary content, aligned to 256.
    ///
    /// # Errors
    /// Too little device memory.
    pub fn allocate(device: &Device, bytes: usize) -> Result<Self, GpuError> {
        let driver = GpuError::driver("allocating device memory");
        device.context.bind_to_thread().map_err(&driver)?;
        // SAFETY: a context is bound to this thread; the address goes to nobody but the value returned, which frees it.
        match unsafe { result::malloc_sync(bytes.max(1)) } {
            Ok(address) => Ok(Self { device: device.clone(), address, bytes }),
            Err(DriverError(sys::CUresult::CUDA_ERROR_OUT_OF_MEMORY)) => {
                let (free, total) = device.context.mem_get_info().map_err(driver)?;
                Err(GpuError::OutOfMemory {
                    needed_bytes: bytes as u64,
                    free_bytes: free as u64,
                    total_bytes: total as u64,
                })
            }
            Err(error) => Err(driver(error)),
        }
    }

    /// As [`DeviceMemory::allocate`], with every byte `byte`.
    ///
    /// # Errors
    /// Too little device memory.
    pub fn filled(device: &Device, bytes: usize, byte: u8) -> Result<Self, GpuError> {
        let mut memory = Self::allocate(device, bytes)?;
        memory.fill(byte)?;
        Ok(memory)
    }

    /// The device address of the first byte, for kernels' arguments.
    #[must_use]
    pub fn address(&self) -> u64 {
        self.address
    }

    /// Length in bytes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.bytes
    }

    /// Whether there are no bytes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.bytes == 0
    }

    /// The device that has the memory.
    #[must_use]
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// Sets every byte, after all work enqueued so far.
    ///
    /// # Errors
    /// Of the device.
    pub fn fill(&mut self, byte: u8) -> Result<(), GpuError> {
        let driver = GpuError::driver("filling device memory");
        self.device.context.bind_to_thread().map_err(&driver)?;
        // SAFETY: address and length are this allocation's own.
        unsafe { result::memset_d8_async(self.address, byte, self.bytes, self.device.stream.cu_stream()) }
            .map_err(driver)
    }

    /// Sets every byte of `range`, after all work enqueued so far.
    ///
    /// # Errors
    /// A range beyond the allocation, or an error of the device.
    pub fn fill_range(&mut self, range: std::ops::Range<usize>, byte: u8) -> Result<(), GpuError> {
        let bytes = range.end.saturating_sub(range.start);
        let address = self.within(range.start, bytes)?;
        if bytes == 0 {
            return Ok(());
        }
        let driver = GpuError::driver("filling device memory");
        self.device.context.bind_to_thread().map_err(&driver)?;
        // SAFETY: the range lies within this allocation (`within`).
        unsafe { result::memset_d8_async(address, byte, bytes, self.device.stream.cu_stream()) }
            .map_err(driver)
    }

    /// Copies `bytes` to `offset_bytes`, after all work enqueued so far; returns when done.
    ///
    /// # Errors
    /// A range beyond the allocation, or an error of the device.
    pub fn write(&mut self, offset_bytes: usize, bytes: &[u8]) -> Result<(), GpuError> {
        let address = self.within(offset_bytes, bytes.len())?;
        if bytes.is_empty() {
            return Ok(());
        }
        let driver = GpuError::driver("copying to the device");
        self.device.context.bind_to_thread().map_err(&driver)?;
        // SAFETY: the target lies within this allocation (`within`); the source outlives the copy, which the next line waits for.
        unsafe { result::memcpy_htod_async(address, bytes, self.device.stream.cu_stream()) }
            .map_err(driver)?;
        self.device.synchronize()
    }

    /// Copies from `offset_bytes` to `bytes`, after all work enqueued so far; returns when done.
    ///
    /// # Errors
    /// A range beyond the allocation, or an error of the device or of a kernel before.
    pub fn read(&self, offset_bytes: usize, bytes: &mut [u8]) -> Result<(), GpuError> {
        let address = self.within(offset_bytes, bytes.len())?;
        if bytes.is_empty() {
            return Ok(());
        }
        let driver = GpuError::driver("copying from the device");
        self.device.context.bind_to_thread().map_err(&driver)?;
        // SAFETY: the source lies within this allocation (`within`); the target is borrowed until the copy is done, which the next line waits for.
        unsafe { result::memcpy_dtoh_async(bytes, address, self.device.stream.cu_stream()) }
            .map_err(driver)?;
        self.device.synchronize()
    }

    /// Enqueues a copy of the first `bytes` bytes to those of `target`, which the device reaches without a detour.
    ///
    /// # Safety
    /// `target` is neither looked at nor dropped before the device has been synchronized, nor while a recording of this copy runs.
    ///
    /// # Errors
    /// More bytes than either has, or an error of the device.
    pub unsafe fn copy_to_pinned(&self, target: &mut PinnedMemory, bytes: usize) -> Result<(), GpuError> {
        let (value_count, room) = (self.bytes as u64, target.bytes as u64);
        let out_of_range = GpuError::OutOfRange { start: 0, end: bytes as u64, value_count, room };
        let address = self.within(0, bytes)?;
        let target = target.bytes_mut().get_mut(..bytes).ok_or(out_of_range)?;
        if bytes == 0 {
            return Ok(());
        }
        let driver = GpuError::driver("copying from the device");
        self.device.context.bind_to_thread().map_err(&driver)?;
        // SAFETY: the source lies within this allocation (`within`), which is freed only after the stream has drained (`drop`); for the target the caller vouches.
        unsafe { result::memcpy_dtoh_async(target, address, self.device.stream.cu_stream()) }.map_err(driver)
    }

    /// Enqueues a copy of the first `bytes` bytes to `target`, on the same device.
    ///
    /// # Errors
    /// More bytes than either has, or an error of the device.
    pub fn copy_to(&self, target: &mut Self, bytes: usize) -> Result<(), GpuError> {
        let (from, to) = (self.within(0, bytes)?, target.within(0, bytes)?);
        let driver = GpuError::driver("copying on the device");
        self.device.context.bind_to_thread().map_err(&driver)?;
        // SAFETY: both ranges lie within their allocations (`within`), which free only after the stream has drained (`drop`).
        unsafe { result::memcpy_dtod_async(to, from, bytes, self.device.stream.cu_stream()) }.map_err(driver)
    }

    fn within(&self, offset_bytes: usize, bytes: usize) -> Result<u64, GpuError> {
        let end = offset_bytes.checked_add(bytes).filter(|&end| end <= self.bytes);
        let room = self.bytes as u64;
        let (start, wanted) = (offset_bytes as u64, offset_bytes.saturating_add(bytes) as u64);
        end.map(|_| self.address + start).ok_or(GpuError::OutOfRange {
            start,
            end: wanted,
            value_count: room,
            room,
        })
    }
}

impl Drop for DeviceMemory {
    fn drop(&mut self) {
        // A kernel may still use the memory: wait. Errors have been or will be reported by the call that waits for results.
        let _ = self.device.synchronize();
        if self.device.context.bind_to_thread().is_ok() {
            // SAFETY: the address came from `malloc_sync`, is freed only here, and the stream has drained.
            let _ = unsafe { result::free_sync(self.address) };
        }
    }
}

/// Host memory that the device copies from and to at full speed and without a detour.
#[derive(Debug)]
pub struct PinnedMemory {
    context: Arc<CudaContext>,
    address: *mut c_void,
    bytes: usize,
}

impl PinnedMemory {
    /// `bytes` zeros.
    ///
    /// # Errors
    /// Of the driver.
    pub fn allocate(device: &Device, bytes: usize) -> Result<Self, GpuError> {
        let driver = GpuError::driver("allocating pinned host memory");
        device.context.bind_to_thread().map_err(&driver)?;
        // SAFETY: a context is bound; the address goes to nobody but the value returned, which frees it.
        let address = unsafe { result::malloc_host(bytes, 0) }.map_err(&driver)?;
        // SAFETY: the allocation has `bytes` bytes; they are written once so that a slice of u8 is valid.
        unsafe { std::ptr::write_bytes(address.cast::<u8>(), 0, bytes) };
        Ok(Self { context: Arc::clone(&device.context), address, bytes })
    }

    /// The bytes.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        // SAFETY: the allocation has `bytes` initialized bytes (`allocate`), and whoever enqueues a copy into it waits for that first (`copy_to_pinned`).
        unsafe { std::slice::from_raw_parts(self.address.cast::<u8>(), self.bytes) }
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: the allocation has `bytes` initialized bytes (`allocate`) and is borrowed mutably through `self`.
        unsafe { std::slice::from_raw_parts_mut(self.address.cast::<u8>(), self.bytes) }
    }
}

// SAFETY: the allocation belongs to this value alone, and any thread may use and free it once it has bound the context (`drop` does).
unsafe impl Send for PinnedMemory {}
// SAFETY: through a shared reference it is only read.
unsafe impl Sync for PinnedMemory {}

impl Drop for PinnedMemory {
    fn drop(&mut self) {
        if self.context.bind_to_thread().is_ok() {
            // SAFETY: the address came from `malloc_host` and is freed only here; `Upload` has waited for every copy from it, and the caller of `copy_to_pinned` for every copy to it.
            let _ = unsafe { result::free_host(self.address) };
        }
    }
}

/// Bytes of each of the two staging buffers.
const STAGING_BYTES: usize = 16 << 20;

/// Copies pieces of host memory one after the other into device memory: while the device copies from one pinned buffer, the host fills the other.
pub(crate) struct Upload<'m> {
    target: &'m mut DeviceMemory,
    staging: [PinnedMemory; 2],
    copied: [Option<cudarc::driver::CudaEvent>; 2],
    current: usize,
    filled: usize,
    offset: usize,
}

impl<'m> Upload<'m> {
    pub(crate) fn to(target: &'m mut DeviceMemory) -> Result<Self, GpuError> {
        let device = target.device.clone();
        let bytes = STAGING_BYTES.min(target.bytes.max(1));
        let staging = [PinnedMemory::allocate(&device, bytes)?, PinnedMemory::allocate(&device, bytes)?];
        Ok(Self { target, staging, copied: [None, None], current: 0, filled: 0, offset: 0 })
    }

    /// The next bytes.
    pub(crate) fn push(&mut self, mut bytes: &[u8]) -> Result<(), GpuError> {
        while !bytes.is_empty() {
            let filled = self.filled;
            let room = self.staging_mut().get_mut(filled..).unwrap_or_default();
            let count = room.len().min(bytes.len());
            let (now, later) = bytes.split_at(count);
            if let Some(room) = room.get_mut(..count) {
                room.copy_from_slice(now);
            }
            self.filled += count;
            bytes = later;
            if self.filled == self.staging_mut().len() {
                self.flush()?;
            }
        }
        Ok(())
    }

    /// Zeros until the next multiple of `alignment` bytes.
    pub(crate) fn align(&mut self, alignment: usize) -> Result<(), GpuError> {
        const ZEROS: [u8; 256] = [0; 256];
        let position = self.offset + self.filled;
        let missing = position.next_multiple_of(alignment) - position;
        self.push(ZEROS.get(..missing).unwrap_or_default())
    }

    /// Copies the rest and waits.
    pub(crate) fn finish(mut self) -> Result<(), GpuError> {
        self.flush()?;
        self.target.device.synchronize()
    }

    fn staging_mut(&mut self) -> &mut [u8] {
        let [first, second] = &mut self.staging;
        if self.current == 0 { first.bytes_mut() } else { second.bytes_mut() }
    }

    fn flush(&mut self) -> Result<(), GpuError> {
        let driver = GpuError::driver("copying to the device");
        let (filled, offset) = (self.filled, self.offset);
        if filled == 0 {
            return Ok(());
        }
        let address = self.target.within(offset, filled)?;
        let stream = Arc::clone(&self.target.device.stream);
        let source: &[u8] = self.staging_mut().get(..filled).unwrap_or_default();
        // SAFETY: the target lies within its allocation (`within`); the source is not written again before the event below, and not freed before the stream drains.
        unsafe { result::memcpy_htod_async(address, source, stream.cu_stream()) }.map_err(&driver)?;
        let event = stream.record_event(None).map_err(&driver)?;
        let [first, second] = &mut self.copied;
        let (used, other) = if self.current == 0 { (first, second) } else { (second, first) };
        *used = Some(event);
        if let Some(event) = other.take() {
            event.synchronize().map_err(driver)?;
        }
        self.current = 1 - self.current;
        self.offset += filled;
        self.filled = 0;
        Ok(())
    }
}

impl Drop for Upload<'_> {
    fn drop(&mut self) {
        // An error may have left a copy in flight; the staging buffers must outlive it.
        let _ = self.target.device.synchronize();
    }
}
