//! The compiler, for tests that need no device.

use gpu_decode::GpuError;
use gpu_decode::nvrtc::Nvrtc;

/// `None`, with the reason printed, where NVRTC is not installed.
pub fn nvrtc() -> Option<Nvrtc> {
    match Nvrtc::load() {
        Ok(nvrtc) => Some(nvrtc),
        Err(GpuError::NoNvrtc) => {
            println!("skipped: {}", GpuError::NoNvrtc);
            None
        }
        Err(other) => panic!("{other}"),
    }
}
