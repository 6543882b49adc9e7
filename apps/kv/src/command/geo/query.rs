//! What GEOSEARCH and GEORADIUS are asked, in any of their forms.

use super::super::{Call, Failure, NOT_INTEGER, SYNTAX};
use super::shape::Shape;
use super::{Point, point, unit};
use crate::double;
use crate::memory::Memory;
use crate::number::parse_i64;
use crate::resp::args::Args;

/// The middle of what is looked for.
#[derive(Clone, Copy, Debug)]
pub(super) enum Middle<'a> {
    Point(Point),
    Member(&'a [u8]),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    Nearest,
    Farthest,
}

/// What a command's name says already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    Search,
    SearchStore,
    Radius { stores: bool },
    RadiusByMember { stores: bool },
}

/// A query.
#[derive(Debug, Default)]
pub(super) struct Query<'a> {
    pub middle: Option<Middle<'a>>,
    pub shape: Option<Shape>,
    /// Meters of the unit that distances are told in.
    pub unit: f64,
    pub order: Option<Order>,
    pub count: Option<u64>,
    /// The first that are found will do.
    pub any: bool,
    pub coordinates: bool,
    pub distances: bool,
    pub numbers: bool,
    /// Where the outcome goes, if it is no reply.
    pub store: Option<&'a [u8]>,
    /// The stored scores are distances.
    pub store_distances: bool,
}

impl<'a> Query<'a> {
    /// Reads the words into `self`, which has those up to a wrong one if there is one.
    pub fn parse<M: Memory>(&mut self, call: &Call<'a, '_, M>, form: Form) -> Result<(), Failure> {
        let args = call.args;
        let mut at = match form {
            Form::Search => 2,
            Form::SearchStore => {
                self.store = Some(args.at(1));
                3
            }
            Form::Radius { .. } => {
                self.middle = Some(Middle::Point(point(args, 2)?));
                self.circle(args, 4)?;
                6
            }
            Form::RadiusByMember { .. } => {
                self.middle = Some(Middle::Member(args.at(2)));
                self.circle(args, 3)?;
                5
            }
        };
        while at < args.len() {
            at += 1 + self.option(args, at, form)?;
        }
        self.check(args, form)
    }

    /// Takes an option; says how many words behind its name it has taken.
    fn option(&mut self, args: Args<'a>, at: usize, form: Form) -> Result<usize, Failure> {
        let left = args.len() - at - 1;
        let flags = [
            ("withdist", &mut self.distances),
            ("withhash", &mut self.numbers),
            ("withcoord", &mut self.coordinates),
            ("any", &mut self.any),
        ];
        if let Some((_, flag)) = flags.into_iter().find(|(name, _)| args.is(at, name)) {
            *flag = true;
            return Ok(0);
        }
        let orders = [("asc", Order::Nearest), ("desc", Order::Farthest)];
        if let Some((_, order)) = orders.into_iter().find(|(name, _)| args.is(at, name)) {
            self.order = Some(order);
            return Ok(0);
        }
        if args.is(at, "count") && left >= 1 {
            let count = parse_i64(args.at(at + 1)).ok_or(NOT_INTEGER)?;
            let count = u64::try_from(count).ok().filter(|count| *count > 0);
            self.count = Some(count.ok_or("ERR COUNT must be > 0")?);
            return Ok(1);
        }
        match form {
            Form::Search | Form::SearchStore => self.search_option(args, at, form),
            Form::Radius { stores } | Form::RadiusByMember { stores } => {
                let distances = args.is(at, "storedist");
                if !stores || left == 0 || !(distances || args.is(at, "store")) {
                    return Err(SYNTAX.into());
                }
                self.store = Some(args.at(at + 1));
                self.store_distances = distances;
                Ok(1)
            }
        }
    }

    fn search_option(&mut self, args: Args<'a>, at: usize, form: Form) -> Result<usize, Failure> {
        let left = args.len() - at - 1;
        let by_member = matches!(self.middle, Some(Middle::Member(_)));
        let by_point = matches!(self.middle, Some(Middle::Point(_)));
        let is_circle = matches!(self.shape, Some(Shape::Circle { .. }));
        let is_box = matches!(self.shape, Some(Shape::Box { .. }));
        if args.is(at, "frommember") && left >= 1 && !by_point {
            self.middle = Some(Middle::Member(args.at(at + 1)));
            return Ok(1);
        }
        if args.is(at, "fromlonlat") && left >= 2 && !by_member {
            self.middle = Some(Middle::Point(point(args, at + 1)?));
            return Ok(2);
        }
        if args.is(at, "byradius") && left >= 2 && !is_box {
            self.circle(args, at + 1)?;
            return Ok(2);
        }
        if args.is(at, "bybox") && left >= 3 && !is_circle {
            self.rectangle(args, at + 1)?;
            return Ok(3);
        }
        if args.is(at, "storedist") && form == Form::SearchStore {
            self.store_distances = true;
            return Ok(0);
        }
        Err(SYNTAX.into())
    }

    /// A radius and its unit.
    fn circle(&mut self, args: Args<'_>, at: usize) -> Result<(), Failure> {
        let radius = double::parse(args.at(at)).ok_or("ERR need numeric radius")?;
        if radius < 0.0 {
            return Err("ERR radius cannot be negative".into());
        }
        self.unit = unit(args, at + 1)?;
        let radius = radius * self.unit;
        self.shape = Some(Shape::Circle { radius });
        Ok(())
    }

    /// A width, a height and their unit.
    fn rectangle(&mut self, args: Args<'_>, at: usize) -> Result<(), Failure> {
        let width = double::parse(args.at(at)).ok_or("ERR need numeric width")?;
        let height = double::parse(args.at(at + 1)).ok_or("ERR need numeric height")?;
        if width < 0.0 || height < 0.0 {
            return Err("ERR height or width cannot be negative".into());
        }
        self.unit = unit(args, at + 2)?;
        let (width, height) = (width * self.unit, height * self.unit);
        self.shape = Some(Shape::Box { width, height });
        Ok(())
    }

    fn check(&self, args: Args<'_>, form: Form) -> Result<(), Failure> {
        let told = self.distances || self.numbers || self.coordinates;
        if self.store.is_some() && told {
            let name = match form {
                Form::SearchStore => "GEOSEARCHSTORE",
                _ => "STORE option in GEORADIUS",
            };
            let rest = "is not compatible with WITHDIST, WITHHASH and WITHCOORD options";
            return Err(format!("ERR {name} {rest}").into());
        }
        let missing = match (self.middle, self.shape) {
            (None, _) => Some("FROMMEMBER or FROMLONLAT"),
            (_, None) => Some("BYRADIUS and BYBOX"),
            _ => None,
        };
        if let Some(missing) = missing {
            let mut text =
                format!("ERR exactly one of {missing} can be specified for ").into_bytes();
            text.extend_from_slice(args.at(0));
            return Err(text.into());
        }
        if self.any && self.count.is_none() {
            return Err("ERR the ANY argument requires COUNT argument".into());
        }
        Ok(())
    }
}
