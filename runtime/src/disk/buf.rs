//! Aligned buffers for direct I/O, recycled per thread; owns no file and no position.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt;
use std::ops::{Deref, DerefMut};

use glommio::io::DmaBuffer;

/// The unit of direct I/O: positions and lengths of writes are multiples of it.
pub const BLOCK_BYTES: usize = 4096;

/// What one thread keeps for reuse.
const POOL_BYTES: usize = 4 << 20;

thread_local! {
    static POOL: RefCell<Pool> = const { RefCell::new(Pool { by_len: BTreeMap::new(), bytes: 0 }) };
}

/// Free buffers by exact length: a buffer of glommio's cannot grow back once it was trimmed.
struct Pool {
    by_len: BTreeMap<usize, Vec<DmaBuffer>>,
    bytes: usize,
}

impl Pool {
    fn take(&mut self, len: usize) -> Option<DmaBuffer> {
        let buffer = self.by_len.get_mut(&len)?.pop()?;
        self.bytes -= len;
        Some(buffer)
    }

    fn give(&mut self, buffer: DmaBuffer) {
        if self.bytes + buffer.len() <= POOL_BYTES {
            self.bytes += buffer.len();
            self.by_len.entry(buffer.len()).or_default().push(buffer);
        }
    }
}

/// A buffer whose address and length are multiples of [`BLOCK_BYTES`].
pub struct AlignedBuf(Option<DmaBuffer>);

impl AlignedBuf {
    /// A buffer of `len` zeros.
    ///
    /// # Panics
    /// When `len` is zero or not a multiple of [`BLOCK_BYTES`].
    pub fn zeroed(len: usize) -> Self {
        assert!(len > 0 && len.is_multiple_of(BLOCK_BYTES), "a buffer holds whole blocks, not {len} bytes");
        let pooled = POOL.with(|pool| pool.borrow_mut().take(len));
        // Not from the executor's registered memory: such a buffer must not outlive its executor.
        let mut buffer = pooled.unwrap_or_else(|| glommio::allocate_dma_buffer_global(len));
        buffer.as_bytes_mut().fill(0);
        Self(Some(buffer))
    }

    /// Takes the memory out, for a write.
    pub(crate) fn into_dma(mut self) -> DmaBuffer {
        self.0.take().expect("the memory is there until the buffer ends")
    }

    /// Gives memory back to this thread's pool after a write.
    pub(crate) fn recycle(buffer: DmaBuffer) {
        drop(Self(Some(buffer)));
    }

    fn memory(&self) -> &DmaBuffer {
        self.0.as_ref().expect("the memory is there until the buffer ends")
    }
}

impl Deref for AlignedBuf {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.memory().as_bytes()
    }
}

impl DerefMut for AlignedBuf {
    fn deref_mut(&mut self) -> &mut [u8] {
        self.0.as_mut().expect("the memory is there until the buffer ends").as_bytes_mut()
    }
}

impl Drop for AlignedBuf {
    fn drop(&mut self) {
        if let Some(buffer) = self.0.take() {
            // A thread that is ending has no pool any more; its memory is simply freed.
            let _ = POOL.try_with(|pool| pool.borrow_mut().give(buffer));
        }
    }
}

impl fmt::Debug for AlignedBuf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "AlignedBuf({} bytes)", self.len())
    }
}
