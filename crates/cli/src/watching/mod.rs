//! How people and tools watch a process that runs: figures over HTTP.

mod exposition;
mod http;

use crate::failure::{Failure, Result};
use crate::out;
use clap::Args;
use exposition::{Format, expose};
pub use http::{Answer, Asked, HttpServer};
use rackmem::Rack;
use serde_json::json;
use std::net::{SocketAddr, TcpListener};
use std::sync::{Arc, Weak};
use std::time::Duration;

/// Between two looks whether an answer that was begun is made.
const STEP: Duration = Duration::from_millis(1);

/// Where figures are served.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Watching")]
pub struct MetricsArgs {
    /// Serve metrics for Prometheus at http://ADDR/metrics, without authentication
    #[arg(
        long,
        value_name = "ADDR",
        value_parser = |text: &str| rackmem::look_up("--metrics", text).map_err(|error| error.what())
    )]
    metrics: Option<SocketAddr>,
    /// Allow --metrics an address other than loopback: whoever reaches it may read
    #[arg(long, requires = "metrics")]
    metrics_open: bool,
}

impl MetricsArgs {
    /// Takes the address, before there is a rack: joining one may take minutes.
    ///
    /// # Errors
    /// When it is not loopback, or cannot be listened on.
    pub fn bind(&self) -> Result<MetricsSocket> {
        let Some(addr) = self.metrics else {
            return Ok(MetricsSocket(None));
        };
        if !addr.ip().is_loopback() && !self.metrics_open {
            return Err(Failure::new(
                format!("--metrics {addr} is not loopback, and metrics have no authentication"),
                "use 127.0.0.1 and reach it by `ssh -L`, or add --metrics-open",
            ));
        }
        listen(addr).map(|bound| MetricsSocket(Some(bound)))
    }
}

fn listen(addr: SocketAddr) -> Result<TcpListener> {
    TcpListener::bind(addr).map_err(|error| {
        Failure::new(
            format!("cannot serve on {addr}: {error}"),
            "choose another address of this host, or port 0 for any free one",
        )
    })
}

/// Takes the address that an option gives, for what has no authentication.
///
/// # Errors
/// When it is not loopback, or cannot be listened on.
pub fn on_loopback(option: &str, addr: SocketAddr) -> Result<TcpListener> {
    if !addr.ip().is_loopback() {
        return Err(Failure::new(
            format!("{option} {addr} is not loopback, and there is no authentication"),
            "use 127.0.0.1 and reach it by `ssh -L`",
        ));
    }
    listen(addr)
}

/// The address, taken or not asked for.
pub struct MetricsSocket(Option<TcpListener>);

impl MetricsSocket {
    /// From now on, figures of the rack are served.
    ///
    /// # Errors
    /// When no thread can be started.
    pub fn serve(self, rack: Rack, json: bool) -> Result<Watched> {
        let rack = Arc::new(rack);
        let start = |listener| {
            let rack = Arc::downgrade(&rack);
            HttpServer::start(listener, move |asked| answer(&rack, asked))
        };
        let server = self.0.map(start).transpose()?;
        if let Some(addr) = server.as_ref().map(HttpServer::addr) {
            match json {
                true => out::line(json!({"metrics": addr.to_string()})),
                false => out::line(format!("metrics: http://{addr}/metrics")),
            }
        }
        Ok(Watched { rack, server })
    }
}

/// A rack, and the server of its figures if there is one.
pub struct Watched {
    rack: Arc<Rack>,
    server: Option<HttpServer>,
}

impl Watched {
    /// The rack.
    pub fn rack(&self) -> &Rack {
        &self.rack
    }

    /// Ends the server. Who is just being answered is waited for.
    pub fn end(self) -> Rack {
        drop(self.server);
        let mut rack = self.rack;
        loop {
            match Arc::try_unwrap(rack) {
                Ok(rack) => return rack,
                Err(looked_at) => rack = looked_at,
            }
            std::thread::sleep(STEP);
        }
    }
}

fn answer(rack: &Weak<Rack>, asked: &Asked) -> Answer {
    let Some(rack) = rack.upgrade() else {
        return Answer::refusal("503 Service Unavailable", "this process is ending");
    };
    match asked.path.as_str() {
        "/metrics" => {
            let format = Format::for_accept(&asked.accept);
            Answer::page(format.media(), expose(&rack, format))
        }
        _ => Answer::refusal("404 Not Found", "there is /metrics"),
    }
}
