//! The HTTP server: its thread, its listener, its paths.
//!
//! | path | answers |
//! |---|---|
//! | `/metrics` | Prometheus (OpenMetrics text) |
//! | `/health`, `/health/ready` | 200 when ready, else 503, with the reasons as JSON |
//! | `/health/live` | 200 when every shard answers, else 503 |

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use axum::Router;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use tokio::sync::oneshot;

use super::exposition;
use super::health::Health;
use super::shards::Shards;

const OPENMETRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// A running HTTP server; dropping it leaves the server running until the process ends.
pub struct Sidecar {
    address: SocketAddr,
    serves: Arc<AtomicBool>,
    stop: oneshot::Sender<()>,
    join: Box<dyn FnOnce()>,
}

/// What the paths answer from.
#[derive(Clone)]
struct Node {
    shards: Shards,
    /// Whether the node has come up as a whole.
    serves: Arc<AtomicBool>,
}

impl Sidecar {
    /// Serves on a listener that is bound already, so that a port in use is found before the node starts.
    pub fn start(listener: TcpListener, shards: Shards) -> io::Result<Sidecar> {
        let address = listener.local_addr()?;
        listener.set_nonblocking(true)?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let (stop, stopped) = oneshot::channel();
        let serves = Arc::new(AtomicBool::new(false));
        let node = Node { shards, serves: Arc::clone(&serves) };
        let body = move || {
            let served = runtime.block_on(async move {
                let listener = tokio::net::TcpListener::from_std(listener)?;
                // A connection that is kept alive must not hold up the stop.
                tokio::select! {
                    served = axum::serve(listener, router(node)) => served,
                    _ = stopped => Ok(()),
                }
            });
            if let Err(error) = served {
                tracing::error!(%error, "the HTTP server ended; metrics and health are gone until the next start");
            }
        };
        let thread = runtime::thread::spawn("http", body)?;
        // A panic there has ended the process.
        let join = Box::new(move || drop(thread.join()));
        Ok(Sidecar { address, serves, stop, join })
    }

    /// The node has come up: from now on it is ready whenever its shards are.
    pub fn node_serves(&self) {
        self.serves.store(true, Ordering::Relaxed);
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Stops serving and waits for the thread.
    pub fn stop(self) {
        // It fails only when the server has ended by itself, which is logged there.
        let _ = self.stop.send(());
        (self.join)();
    }
}

impl Node {
    async fn health(&self) -> Health {
        Health::of(&self.shards.ask().await, self.serves.load(Ordering::Relaxed))
    }
}

fn router(node: Node) -> Router {
    Router::new()
        .route("/metrics", get(metrics))
        .route("/health", get(ready))
        .route("/health/ready", get(ready))
        .route("/health/live", get(live))
        .with_state(node)
}

async fn metrics(State(node): State<Node>) -> Response {
    let answers = node.shards.ask().await;
    let alive = answers.iter().all(Option::is_some);
    let stats = answers.into_iter().flatten().map(|report| report.stats).collect();
    match exposition::text(stats, alive) {
        Ok(text) => ([(header::CONTENT_TYPE, OPENMETRICS)], text).into_response(),
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()).into_response(),
    }
}

async fn ready(State(node): State<Node>) -> Response {
    let health = node.health().await;
    answer(health.ready, &health)
}

async fn live(State(node): State<Node>) -> Response {
    let health = node.health().await;
    answer(health.alive, &health)
}

fn answer(good: bool, health: &Health) -> Response {
    let status = if good { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    let json = serde_json::to_string(health).unwrap_or_default();
    (status, [(header::CONTENT_TYPE, "application/json")], json + "\n").into_response()
}
