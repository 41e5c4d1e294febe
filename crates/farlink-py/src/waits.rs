//! Waits of asyncio, on the threads of one runtime.
//!
//! These threads never run Python. One that attaches to an interpreter which is ending aborts the process, as programs did now and then
//! whose futures `pyo3-async-runtimes` completed. Instead, ends of waits are put into a list, and a byte into a socket that the event
//! loop watches.

use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};

use pyo3::prelude::*;
use tokio::runtime::{Builder, Runtime};
use tokio::task::AbortHandle;

/// The runtime of this process; its threads start when it is first used.
pub(crate) fn runtime() -> &'static Runtime {
    static RUNTIME: OnceLock<Runtime> = OnceLock::new();
    RUNTIME.get_or_init(|| {
        let runtime = Builder::new_multi_thread().worker_threads(2).thread_name("farlink-net").enable_all().build();
        runtime.expect("the system has threads and file descriptors")
    })
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

#[derive(Debug, Default)]
struct State {
    next: u64,
    under_way: BTreeMap<u64, AbortHandle>,
    ended: Vec<u64>,
}

#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    watched: UnixStream,
    waker: UnixStream,
}

/// The waits of one event loop.
#[pyclass(frozen, module = "farlink._core")]
pub(crate) struct NetWaits(Arc<Shared>);

impl NetWaits {
    /// Begins to wait; returns the number of the wait.
    pub(crate) fn begin(&self, wait: impl Future<Output = ()> + Send + 'static) -> u64 {
        let shared = self.0.clone();
        // It cannot end before it is in the list.
        let mut state = lock(&self.0.state);
        let number = state.next;
        let task = runtime().spawn(async move {
            wait.await;
            shared.end(number);
        });
        state.next += 1;
        state.under_way.insert(number, task.abort_handle());
        number
    }
}

impl Shared {
    fn end(&self, number: u64) {
        let mut state = lock(&self.state);
        if state.under_way.remove(&number).is_some() {
            state.ended.push(number);
            // A full socket wakes the event loop as well.
            let _ = (&self.waker).write(&[0]);
        }
    }
}

#[pymethods]
impl NetWaits {
    #[new]
    fn new() -> io::Result<Self> {
        let (watched, waker) = UnixStream::pair()?;
        watched.set_nonblocking(true)?;
        waker.set_nonblocking(true)?;
        Ok(NetWaits(Arc::new(Shared { state: Mutex::default(), watched, waker })))
    }

    /// The file descriptor that is readable when waits have ended.
    fn fileno(&self) -> i32 {
        self.0.watched.as_raw_fd()
    }

    /// The numbers of waits that have ended since it was asked last.
    fn ended(&self) -> Vec<u64> {
        let mut bytes = [0; 256];
        while (&self.0.watched).read(&mut bytes).is_ok_and(|read| read == bytes.len()) {}
        std::mem::take(&mut lock(&self.0.state).ended)
    }

    /// Waits no longer.
    fn cancel(&self, number: u64) {
        let task = lock(&self.0.state).under_way.remove(&number);
        if let Some(task) = task {
            task.abort();
        }
    }
}

impl Drop for NetWaits {
    fn drop(&mut self) {
        for task in std::mem::take(&mut lock(&self.0.state).under_way).into_values() {
            task.abort();
        }
    }
}
