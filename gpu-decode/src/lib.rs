//! cb2t on NVIDIA GPUs: the only crate that knows CUDA.
//!
//! Blocks are proven on the host ([`codec_core::CheckedBlock`]), uploaded as a [`DeviceColumn`], and decoded by kernels made from the codecs' own device code:
//! [`source`] joins the prelude, the codecs in use and a kernel, each after a `#line`; [`program`] compiles that with NVRTC to a cubin for the device at hand and keeps it on disk.
//! No codec is named here: what a codec can be specialized for it says itself ([`codec_core::Codec::device_parameters`]).
//!
//! The CUDA files in `cuda/` include nothing and serve any other CUDA program as well; `examples/standalone` is one.
//!
//! Nothing here panics without a driver, a device or NVRTC: [`GpuError`] says what is missing and what to install.
//!
//! | module | idea |
//! | --- | --- |
//! | [`device`] | the devices of this machine |
//! | [`memory`] | allocations, copies and pinned staging |
//! | [`nvrtc`] | find NVRTC, compile to a cubin |
//! | [`cache`] | cubins on disk |
//! | [`source`] | what a program is joined from |
//! | [`program`] | a loaded program, its kernels and what they use |
//! | [`mod@column`] | proven blocks on a device |
//! | [`tiles`] | columns for queries, whose tiles all decode as whole ones |
//! | [`decode`] | whole columns or ranges of rows into device memory; sums |
//! | [`encode`] | a column in device memory into blocks |
//! | [`check`] | a device against the host, over a whole registry |
//! | [`data`] | columns to check and to measure with |
//! | [`mod@bench`] | what `cb2t bench decode` measures |

pub mod bench;
pub mod cache;
pub mod check;
pub mod column;
pub mod data;
pub mod decode;
pub mod device;
pub mod encode;
mod error;
pub mod memory;
pub mod nvrtc;
pub mod program;
pub mod source;
pub mod tiles;

pub use column::DeviceColumn;
pub use decode::LaunchShape;
pub use device::{Device, DeviceEvent, Recording};
pub use error::GpuError;
pub use memory::{DeviceMemory, PinnedMemory};
pub use program::Program;
