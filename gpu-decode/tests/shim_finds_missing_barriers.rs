//! The shim is a test only if it fails on wrong kernels: here are some.

#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stdout, clippy::cast_possible_truncation)]

mod shim;

use shim::ShimProgram;

/// A kernel in which each thread writes shared memory and reads what a neighbour wrote, and a `main` that runs it in three orders and compares.
fn program(threads: u32, barrier: &str) -> Option<ShimProgram> {
    ShimProgram::compile(&format!(
        r#"
static unsigned wrong;
__global__ void neighbours() {{
  __shared__ unsigned written[1024];
  written[threadIdx.x] = threadIdx.x + 1;
  {barrier}
  if (written[(threadIdx.x + 1) % {threads}] != (threadIdx.x + 1) % {threads} + 1) wrong++;
  __syncthreads();
  written[threadIdx.x] = 0;
}}
int main() {{
  for (unsigned order = 0; order < 3; order++) shim::launch(2, {threads}, order, [] {{ neighbours(); }});
  std::printf("%u wrong\n", wrong);
  return wrong != 0;
}}"#
    ))
}

fn succeeds(threads: u32, barrier: &str) -> Option<bool> {
    let output = program(threads, barrier)?.run(&[]);
    Some(output.status.success())
}

#[test]
fn the_kernel_with_its_barrier_agrees_in_all_orders() {
    assert_ne!(succeeds(128, "__syncthreads();"), Some(false));
    assert_ne!(succeeds(32, "__syncwarp();"), Some(false));
}

#[test]
fn a_missing_barrier_is_found() {
    assert_ne!(succeeds(128, ""), Some(true));
    assert_ne!(succeeds(32, ""), Some(true));
}

#[test]
fn a_warps_barrier_is_not_a_thread_blocks() {
    assert_ne!(succeeds(128, "__syncwarp();"), Some(true));
}

#[test]
fn a_barrier_that_some_threads_skip_is_found() {
    assert_ne!(succeeds(128, "if (threadIdx.x != 5) __syncthreads();"), Some(true));
    assert_ne!(
        succeeds(32, "if (threadIdx.x != 5) __syncwarp(); else __shfl_sync(0xffffffffu, 1, 0);"),
        Some(true)
    );
}

#[test]
fn an_access_beyond_shared_memory_is_found() {
    let run = ShimProgram::compile(
        r"
__global__ void beyond() { __shared__ unsigned few[8]; few[threadIdx.x] = 1; __syncwarp(); }
int main() { shim::launch(1, 32, 0, [] { beyond(); }); return 0; }",
    )
    .map(|program| program.run(&[]));
    let found = run.map(|output| String::from_utf8_lossy(&output.stderr).into_owned());
    assert!(found.is_none_or(|message| message.contains("Sanitizer") || message.contains("runtime error")));
}
