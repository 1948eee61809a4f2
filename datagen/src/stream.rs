//! Batches made by several threads and handed out in order.
use crate::error::{Error, Result};
use arrow::array::{RecordBatch, RecordBatchReader};
use arrow::datatypes::SchemaRef;
use arrow::error::ArrowError;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{Builder, JoinHandle};

/// A batch size, in rows, that suits most consumers.
pub const DEFAULT_BATCH_ROWS: usize = 65_536;

/// The largest batch size, in rows: the strings of so many rows stay below the 2 GiB that an Arrow Utf8 array can hold.
pub const MAX_BATCH_ROWS: usize = 1 << 22;

/// A table's batches in order, made ahead by worker threads.
///
/// Each worker makes every n-th task's batches and waits when two messages of its own have not been taken, so that at
/// most three batches a worker exist at once. Dropping the stream stops the workers and waits for the batch that each
/// is making.
#[derive(Debug)]
pub struct BatchStream {
    schema: SchemaRef,
    workers: Vec<Worker>,
    next_task: u32,
    task_count: u32,
}

#[derive(Debug)]
struct Worker {
    /// None once the stream is dropped, which makes the worker's next send fail.
    messages: Option<Receiver<Message>>,
    thread: Option<JoinHandle<()>>,
}

enum Message {
    Batch(Result<RecordBatch, ArrowError>),
    EndOfTask,
}

impl BatchStream {
    /// The batches of tasks 0 to `task_count` - 1, in this order, made by `threads` threads (at least one).
    pub(crate) fn spawn<F, B>(schema: SchemaRef, threads: usize, task_count: u32, task: F) -> Result<Self>
    where
        F: Fn(u32) -> B + Send + Sync + 'static,
        B: Iterator<Item = Result<RecordBatch, ArrowError>>,
    {
        let task = Arc::new(task);
        let step = u32::try_from(threads).unwrap_or(u32::MAX).min(task_count).max(1);
        let workers = (0..step)
            .map(|first_task| {
                let (sender, messages) = sync_channel(2);
                let task = Arc::clone(&task);
                let thread = Builder::new().name("datagen".to_owned()).spawn(move || {
                    let tasks = (first_task..task_count).step_by(usize::try_from(step).unwrap_or(usize::MAX));
                    send_tasks(tasks, &*task, &sender);
                })?;
                Ok(Worker { messages: Some(messages), thread: Some(thread) })
            })
            .collect::<Result<_>>()?;
        Ok(Self { schema, workers, next_task: 0, task_count })
    }

    /// The next message of the worker whose turn it is; None when it is gone.
    fn receive(&self) -> Option<Message> {
        let turn = usize::try_from(self.next_task).ok()? % self.workers.len();
        self.workers.get(turn)?.messages.as_ref()?.recv().ok()
    }
}

/// Sends the batches of `tasks`, until the receiver is gone.
fn send_tasks<B>(tasks: impl Iterator<Item = u32>, task: impl Fn(u32) -> B, sender: &SyncSender<Message>)
where
    B: Iterator<Item = Result<RecordBatch, ArrowError>>,
{
    for index in tasks {
        let messages = task(index).map(Message::Batch).chain([Message::EndOfTask]);
        for message in messages {
            if sender.send(message).is_err() {
                return;
            }
        }
    }
}

impl Iterator for BatchStream {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        while self.next_task < self.task_count {
            match self.receive() {
                Some(Message::Batch(batch)) => {
                    if batch.is_err() {
                        self.next_task = self.task_count;
                    }
                    return Some(batch);
                }
                Some(Message::EndOfTask) => self.next_task += 1,
                None => {
                    let stopped = format!("the generator thread of part {} stopped early", self.next_task);
                    self.next_task = self.task_count;
                    return Some(Err(ArrowError::ComputeError(stopped)));
                }
            }
        }
        None
    }
}

impl RecordBatchReader for BatchStream {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }
}

impl Drop for BatchStream {
    fn drop(&mut self) {
        for worker in &mut self.workers {
            worker.messages = None;
        }
        for thread in self.workers.iter_mut().filter_map(|worker| worker.thread.take()) {
            // A panicked worker has already been reported by `next`; there is nothing to add here.
            let _ = thread.join();
        }
    }
}

/// Checks a batch size given by a caller, in rows.
pub(crate) fn check_batch_rows(batch_rows: usize) -> Result<u32> {
    match u32::try_from(batch_rows) {
        Ok(rows) if (1..=MAX_BATCH_ROWS).contains(&batch_rows) => Ok(rows),
        _ => Err(Error::BatchRows { batch_rows }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::{ArrayRef, AsArray, Int32Array};
    use arrow::datatypes::Int32Type;
    use std::sync::atomic::{AtomicUsize, Ordering};

    fn batch(value: i32) -> RecordBatch {
        let column: ArrayRef = Arc::new(Int32Array::from(vec![value]));
        RecordBatch::try_from_iter([("value", column)]).unwrap()
    }

    fn value(batch: &RecordBatch) -> i32 {
        batch.column(0).as_primitive::<Int32Type>().value(0)
    }

    /// Task i has i % 3 batches, each of value i.
    fn uneven(task: u32) -> impl Iterator<Item = Result<RecordBatch, ArrowError>> {
        (0..task % 3).map(move |_| Ok(batch(task.cast_signed())))
    }

    #[test]
    fn tasks_come_in_order_on_any_number_of_threads() {
        let expected: Vec<i32> = (0..100).flat_map(|task| (0..task % 3).map(move |_| task)).collect();
        for threads in [0, 1, 2, 7, 1000] {
            let stream = BatchStream::spawn(batch(0).schema(), threads, 100, uneven).unwrap();
            let values: Vec<i32> = stream.map(|batch| value(&batch.unwrap())).collect();
            assert_eq!(values, expected, "{threads} threads");
        }
    }

    #[test]
    fn no_tasks_make_an_empty_stream() {
        let mut stream = BatchStream::spawn(batch(0).schema(), 4, 0, uneven).unwrap();
        assert!(stream.next().is_none());
    }

    #[test]
    fn workers_wait_for_the_consumer_and_stop_when_it_leaves() {
        let made = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&made);
        let endless = move |_| {
            let count = Arc::clone(&count);
            std::iter::repeat_with(move || {
                count.fetch_add(1, Ordering::Relaxed);
                Ok(batch(0))
            })
        };
        let mut stream = BatchStream::spawn(batch(0).schema(), 3, 1000, endless).unwrap();
        let taken = 10;
        assert_eq!(stream.by_ref().take(taken).count(), taken);
        drop(stream);
        assert!(made.load(Ordering::Relaxed) <= taken + 3 * 3);
    }

    #[test]
    fn an_error_ends_the_stream() {
        let failing =
            |task| std::iter::once(if task < 2 { Ok(batch(0)) } else { Err(ArrowError::DivideByZero) });
        let results: Vec<_> = BatchStream::spawn(batch(0).schema(), 2, 10, failing).unwrap().collect();
        assert_eq!(results.iter().map(|r| r.is_ok()).collect::<Vec<_>>(), [true, true, false]);
    }

    #[test]
    fn a_lost_worker_is_an_error_and_not_an_early_end() {
        let panicking = |task| {
            assert!(task < 2, "this worker is lost on purpose");
            std::iter::once(Ok(batch(0)))
        };
        let results: Vec<_> = BatchStream::spawn(batch(0).schema(), 2, 10, panicking).unwrap().collect();
        assert_eq!(results.iter().map(|r| r.is_ok()).collect::<Vec<_>>(), [true, true, false]);
    }

    #[test]
    fn batch_sizes_are_checked() {
        assert_eq!(check_batch_rows(1).unwrap(), 1);
        assert!(check_batch_rows(MAX_BATCH_ROWS).is_ok());
        for batch_rows in [0, MAX_BATCH_ROWS + 1, usize::MAX] {
            assert!(matches!(check_batch_rows(batch_rows), Err(Error::BatchRows { .. })));
        }
    }
}
