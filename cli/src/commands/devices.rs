//! `cb2t devices`.

use gpu_decode::Device;
use serde_json::json;

use crate::args::Devices;
use crate::error::{CliError, Outcome};
use crate::output::{print_json, print_text};
use crate::render::{bytes, table};

pub fn run(args: &Devices) -> Result<Outcome, CliError> {
    // Without a driver there are no devices, which is an answer; why, is said beside it.
    let (devices, reason) = match Device::all() {
        Ok(devices) => (devices, None),
        Err(error) => (Vec::new(), Some(error.to_string())),
    };
    let threads = rayon::current_num_threads();
    if args.json {
        let infos: Vec<_> = devices.iter().map(Device::info).collect();
        print_json(&json!({ "cpu": { "threads": threads }, "cuda": infos, "cuda_unavailable": reason }))?;
        return Ok(Outcome::Done);
    }
    let mut rows = vec![vec![
        "cpu".into(),
        format!("{threads} threads"),
        "-".into(),
        "-".into(),
        "-".into(),
        "-".into(),
    ]];
    rows.extend(devices.iter().map(|device| {
        let info = device.info();
        let (major, minor) = info.compute_capability;
        vec![
            format!("cuda:{}", info.ordinal),
            info.name.clone(),
            format!("{major}.{minor}"),
            info.multiprocessor_count.to_string(),
            bytes(info.memory_bytes),
            bytes(info.l2_bytes),
        ]
    }));
    let mut text = table(&["device", "name", "compute", "multiprocessors", "memory", "L2"], rows, &[3, 4, 5]);
    if let Some(reason) = reason {
        text.push_str(&format!("\nno CUDA device: {reason}\n"));
    }
    print_text(&text)?;
    Ok(Outcome::Done)
}

/// `cuda` or `cuda:N` as a device.
pub fn cuda(name: &str) -> Result<Device, CliError> {
    let ordinal = match name.strip_prefix("cuda") {
        Some("") => Some(0),
        Some(rest) => rest.strip_prefix(':').and_then(|number| number.parse().ok()),
        None => None,
    };
    let ordinal = ordinal.ok_or_else(|| {
        CliError::Usage(format!("--device {name}: use cpu, cuda or cuda:N; `cb2t devices` lists them"))
    })?;
    Device::new(ordinal).map_err(CliError::device)
}
