//! The same pictures for a browser.

use super::sample::Sample;
use crate::ended::Ended;
use crate::failure::Result;
use crate::out;
use crate::stop::Stop;
use crate::watching::{Answer, Asked, HttpServer, on_loopback};
use rackmem::Config;
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

/// It asks for the newest sample, and has nothing of elsewhere.
const PAGE: &str = include_str!("page.html");

/// Serves samples until told to stop.
///
/// # Errors
/// When the address is not loopback or cannot be listened on, and when nodes cannot be asked.
pub fn serve(
    addr: SocketAddr,
    (config, seconds): (&Config, u32),
    mut before: Sample,
    stop: &Stop,
    machine: bool,
) -> Result<Ended> {
    let listener = on_loopback("--page", addr)?;
    let newest = Arc::new(RwLock::new(status(&before, &before, 0, seconds)));
    let told = newest.clone();
    let server = HttpServer::start(listener, move |asked| answer(asked, &told))?;
    match machine {
        true => out::line(json!({"page": server.addr().to_string()})),
        false => out::line(format!("page: http://{}/ (Ctrl-C ends it)", server.addr())),
    }
    let mut taken = 0;
    while stop.sleep(Duration::from_secs(seconds.into())) {
        let now = Sample::take(config)?;
        taken += 1;
        *newest.write().unwrap_or_else(PoisonError::into_inner) =
            status(&now, &before, taken, seconds);
        before = now;
    }
    Ok(Ended::Interrupted)
}

fn status(now: &Sample, before: &Sample, taken: u64, seconds: u32) -> String {
    let mut status = now.json(before);
    status["sample"] = Value::from(taken);
    status["interval"] = Value::from(seconds);
    status.to_string()
}

fn answer(asked: &Asked, newest: &RwLock<String>) -> Answer {
    match asked.path.as_str() {
        "/" => Answer::page("text/html; charset=utf-8", PAGE.to_owned()),
        "/status.json" => {
            let newest = newest.read().unwrap_or_else(PoisonError::into_inner);
            Answer::page("application/json", newest.clone())
        }
        _ => Answer::refusal("404 Not Found", "there are / and /status.json"),
    }
}
