//! TCP of the current world; owns no framing and no deadlines.

mod listener;
mod stream;

pub use listener::{TcpListener, probe};
pub use stream::{ReadHalf, TcpStream, WriteHalf};
