//! `rackmem bench bounded --sim`: PageRank on the paper's machine, by a model (BI Fig. 10).

use rackmem_bench::report::Report;
use rackmem_bench::run::BenchError;
use rackmem_graph::sockets::{ASSUMED, Counted, FITTED_TO, Fit, PAPER_AT_EIGHT, Path};

const ENGINES: [&str; 2] = ["bi-on-demand", "bi-periodic"];

/// Models it on an R-MAT graph of this scale and seed: the figures, and by how much messages take
/// longer at most sockets than on-demand and periodic quiescence, for each path.
pub fn model(scale: u32, seed: u64, report: &mut Report) -> Result<Vec<[f64; 2]>, BenchError> {
    let missing = |what: String| BenchError::Missing(what);
    let counted = Counted::all(scale, seed).map_err(|error| missing(error.to_string()))?;
    for counted in &counted {
        let case = |what: &str| format!("sim/counted/{what}/sockets-{}", counted.sockets);
        report.add(
            &case("replication"),
            counted.replication,
            "sockets a vertex",
        )?;
        report.add(&case("messages"), counted.messages[0], "a step and socket")?;
        report.add(&case("lines"), counted.lines, "a step and socket")?;
    }
    let mut gains = Vec::new();
    for (name, path) in [("side-by-side", Path::SideBySide), ("one-path", Path::One)] {
        let fit = Fit::new(&counted[0], path)
            .ok_or_else(|| missing("no costs lead to the figures at two sockets".to_owned()))?;
        report.add(&format!("sim/{name}/fitted/message"), fit.message, "ns")?;
        report.add(&format!("sim/{name}/fitted/line"), fit.line, "ns of a core")?;
        for counted in &counted {
            let case = |engine: &str| format!("sim/{name}/{engine}/sockets-{}", counted.sockets);
            let [messages, bounded @ ..] = fit.times(counted);
            report.add(&case("messages"), messages / 1e6, "ms a step")?;
            for (engine, time) in ENGINES.into_iter().zip(bounded) {
                report.add_against(&case(engine), time / 1e6, "ms a step", &case("messages"))?;
            }
        }
        gains.push(counted.last().map_or([0.0; 2], |eight| fit.gains(eight)));
    }
    Ok(gains)
}

/// [`model`], and what the paper says to it.
pub fn simulate(scale: u32, report: &mut Report) -> Result<String, BenchError> {
    let gains = model(scale, 1, report)?;
    let mut lines = vec![format!(
        "Assumed, for the text has neither: {} ns of a core an edge, {} ns to drop a line. Fitted: a message, a line.",
        ASSUMED[0], ASSUMED[1]
    )];
    for (nth, engine) in ENGINES.into_iter().enumerate() {
        let (least, most) = (gains[0][nth], gains[1][nth]);
        let paper = PAPER_AT_EIGHT[nth];
        let verdict = match (least..=most).contains(&paper) {
            true => "between",
            false => "not reproduced",
        };
        lines.push(format!(
            "{engine}: at 2 sockets {:.2} of messages' time (fitted); at 8 messages take {paper:.2} of its time \
             in the paper, {least:.2} to {most:.2} here: {verdict}",
            FITTED_TO[nth]
        ));
    }
    let on_demand = gains.iter().map(|gains| gains[0] / gains[1]);
    let (least, most) = on_demand.fold((f64::MAX, 0.0_f64), |(least, most), gain| {
        (least.min(gain), most.max(gain))
    });
    let verdict = match (least..=most).contains(&1.05) {
        true => "between",
        false => "not reproduced: what is old costs steps, which are not modelled",
    };
    lines.push(format!(
        "bi-on-demand is 5% faster than bi-periodic on average in the paper, {:+.0}% to {:+.0}% at 8 sockets here: {verdict}",
        (least - 1.0) * 100.0,
        (most - 1.0) * 100.0
    ));
    Ok(lines.join("\n"))
}
