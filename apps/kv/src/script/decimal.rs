//! Numbers as C's `printf("%.*g")` writes them, which is what scripts' numbers look like in Redis.

/// `value` with so many significant digits, without zeros at the end.
pub(crate) fn general(value: f64, digits: usize) -> String {
    if value.is_nan() {
        return if value.is_sign_negative() {
            "-nan"
        } else {
            "nan"
        }
        .into();
    }
    if value.is_infinite() {
        return if value < 0.0 { "-inf" } else { "inf" }.into();
    }
    let digits = digits.max(1);
    let scientific = format!("{value:.*e}", digits - 1);
    let Some((mantissa, exponent)) = scientific.split_once('e') else {
        return scientific;
    };
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if exponent < -4 || exponent >= digits as i32 {
        let sign = if exponent < 0 { '-' } else { '+' };
        return format!("{}e{sign}{:02}", trimmed(mantissa), exponent.abs());
    }
    let decimals = (digits as i32 - 1 - exponent).max(0) as usize;
    trimmed(&format!("{value:.decimals$}")).into()
}

/// Without zeros behind the point, and without the point if nothing is behind it.
fn trimmed(text: &str) -> &str {
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.'),
        false => text,
    }
}

/// A number as a reply has it: towards zero, and the smallest integer where there is none.
pub(crate) fn truncated(value: f64) -> i64 {
    // Of floats, the first that is too large.
    const END: f64 = -(i64::MIN as f64);
    match value >= i64::MIN as f64 && value < END {
        true => value as i64,
        false => i64::MIN,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_look_as_in_c() {
        for (value, digits, text) in [
            (3.3, 17, "3.2999999999999998"),
            (1e15, 17, "1000000000000000"),
            (12345678901234567890.0, 17, "1.2345678901234567e+19"),
            (-0.5, 17, "-0.5"),
            (0.0001, 14, "0.0001"),
            (0.00001, 14, "1e-05"),
            (1e20, 14, "1e+20"),
            (0.1, 14, "0.1"),
            (99999999999999.9, 14, "1e+14"),
            (1e300, 17, "1.0000000000000001e+300"),
            (0.0, 17, "0"),
            (f64::INFINITY, 17, "inf"),
        ] {
            assert_eq!(general(value, digits), text);
        }
    }

    #[test]
    fn replies_have_no_fractions() {
        for (value, integer) in [
            (3.99, 3),
            (-3.99, -3),
            (1e300, i64::MIN),
            (-1e300, i64::MIN),
            (9223372036854775808.0, i64::MIN),
            (f64::NAN, i64::MIN),
            (9007199254740992.0, 1 << 53),
        ] {
            assert_eq!(truncated(value), integer);
        }
    }
}
