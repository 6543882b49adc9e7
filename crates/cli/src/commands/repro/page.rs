//! The page: everything in one file, without a script, readable without a network, in light and
//! dark.

use super::Row;
use super::catalogue::Paper;
use super::plot::escaped;
use rackmem_bench::judged::Judged;
use rackmem_bench::report::number;
use std::fmt::Write;

const STYLE: &str = include_str!("page.css");

/// What the page says above its figures.
pub struct Head<'a> {
    pub version: &'a str,
    pub commit: &'a str,
    pub machine: &'a str,
    pub seed: u64,
}

/// The page of these figures.
pub fn html(head: &Head<'_>, rows: &[Row]) -> String {
    let mut text = format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>rackmem: the papers' figures</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n\
         <header>\n<h1>The papers' figures</h1>\n\
         <p>Each figure of five papers three times: what the paper says, what a model of its hardware \
         says around the code that ships (seed {}), and what this machine measured. <em>Agrees</em> is within 20%, \
         <em>near</em> within 50%; a verdict with which the model was calibrated proves nothing and says so.</p>\n\
         <p class=\"small\">rackmem {}, commit {} · {}</p>\n</header>\n<main>\n",
        head.seed,
        escaped(head.version),
        escaped(head.commit),
        escaped(head.machine)
    );
    overview(&mut text, rows);
    for paper in Paper::ALL {
        let mut own = rows
            .iter()
            .filter(|row| row.figure.paper == paper)
            .peekable();
        if own.peek().is_some() {
            put(
                &mut text,
                format_args!("<h2>{}</h2>\n", escaped(paper.title())),
            );
        }
        own.for_each(|row| section(&mut text, row));
    }
    text.push_str("</main>\n</body>\n</html>\n");
    text
}

/// All figures, a line each.
fn overview(text: &mut String, rows: &[Row]) {
    text.push_str(
        "<div class=\"wide\"><table>\n<thead><tr><th>figure</th><th>what</th><th>the model</th>\
         <th>this machine</th></tr></thead>\n<tbody>\n",
    );
    for row in rows {
        put(
            text,
            format_args!(
                "<tr><td><a href=\"#{0}\">{0}</a></td><td>{1}</td><td>{2}</td><td>{3}</td></tr>\n",
                row.figure.id,
                escaped(row.figure.title),
                escaped(&row.model_verdicts()),
                escaped(&row.here_verdicts())
            ),
        );
    }
    text.push_str("</tbody></table></div>\n");
}

fn section(text: &mut String, row: &Row) {
    let figure = row.figure;
    put(
        text,
        format_args!(
            "<section id=\"{}\">\n<h3>{}</h3>\n<p class=\"small\">{}</p>\n",
            figure.id,
            escaped(figure.title),
            escaped(figure.place)
        ),
    );
    if let Some(model) = &row.model {
        for plot in figure.plots {
            let caption = match plot.title {
                "" => "The model".to_owned(),
                title => format!("The model: {title}"),
            };
            put(
                text,
                format_args!(
                    "<figure>\n{}<figcaption>{}</figcaption>\n</figure>\n",
                    plot.svg(&model.cases),
                    escaped(&caption)
                ),
            );
        }
        claims(text, "The model, beside the paper", &model.claims);
    }
    claims(text, "This machine, beside the paper", &row.here);
    for why in &row.left_out {
        put(
            text,
            format_args!("<p class=\"why\">Not measured: {}</p>\n", escaped(why)),
        );
    }
    if !figure.why.is_empty() {
        put(
            text,
            format_args!("<p class=\"why\">{}</p>\n", escaped(figure.why)),
        );
    }
    text.push_str("</section>\n");
}

fn claims(text: &mut String, caption: &str, claims: &[Judged]) {
    if claims.is_empty() {
        return;
    }
    put(
        text,
        format_args!(
            "<div class=\"wide\"><table>\n<caption>{caption}</caption>\n<thead><tr><th>the paper's text</th>\
             <th>paper</th><th>ours</th><th>ours/paper</th><th>verdict</th></tr></thead>\n<tbody>\n"
        ),
    );
    for claim in claims {
        let ratio = claim.ratio.map_or(String::new(), number);
        let word = claim.word();
        put(
            text,
            format_args!(
                "<tr><td>{} <span class=\"small\">{}</span></td><td>{}</td><td>{}</td><td>{ratio}</td>\
                 <td class=\"{word}\">{word}</td></tr>\n",
                escaped(claim.says),
                escaped(claim.place),
                claim.paper,
                claim.ours,
            ),
        );
    }
    text.push_str("</tbody></table></div>\n");
}

/// Text grows; that cannot fail.
fn put(text: &mut String, what: std::fmt::Arguments<'_>) {
    let _ = text.write_fmt(what);
}
