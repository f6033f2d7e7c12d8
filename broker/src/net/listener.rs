//! Accepting connections on one shard. Every shard listens on the same addresses; the kernel spreads the clients.

use crate::shard::Shard;
use runtime::net::TcpListener;
use runtime::time;
use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;

/// After a failed accept, most likely for want of file descriptors, wait for some to come back.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// A listener could not be opened.
#[derive(Debug, thiserror::Error)]
#[error("listening on {address}: {reason}")]
pub struct BindError {
    /// Where.
    pub address: SocketAddr,
    /// Why not.
    pub reason: io::Error,
}

/// Checks that nobody else listens there, and chooses the port where 0 stands for any: before the first `bind`, as the
/// shards' sockets would share the port with those of another process.
pub fn probe(address: SocketAddr) -> Result<SocketAddr, BindError> {
    runtime::net::probe(address).map_err(|reason| BindError { address, reason })
}

/// Opens a listener.
pub fn bind(address: SocketAddr) -> Result<TcpListener, BindError> {
    TcpListener::bind(address).map_err(|reason| BindError { address, reason })
}

/// Accepts for ever. `listener_index` is the position of the listener in the configuration.
pub async fn serve(shard: Rc<Shard>, listener: TcpListener, listener_index: usize) {
    loop {
        let accepted = listener.accept().await.and_then(|stream| {
            stream.set_nodelay(true)?;
            let peer = stream.peer_addr()?;
            Ok((stream, peer))
        });
        match accepted {
            Ok((stream, peer)) => {
                shard.metrics.connections_accepted.add(1);
                shard.connections.admit(&shard, stream, peer, listener_index);
            }
            Err(error) => {
                tracing::warn!(%error, "accepting a connection");
                time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}
