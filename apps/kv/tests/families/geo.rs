//! Places.

use super::check;

#[test]
fn places_are_added_found_and_measured() {
    check(
        r#"
        > GEOADD g 13.361389 38.115556 Palermo 15.087269 37.502669 Catania
        < :2
        > ZSCORE g Palermo
        < "3479099956230698"
        > GEODIST g Palermo Catania
        < "166274.1516"
        > GEODIST g Palermo Catania km
        < "166.2742"
        > GEODIST g Palermo nowhere
        < nil
        > GEODIST g Palermo Catania parsec
        < -ERR unsupported unit provided. please use M, KM, FT, MI
        > GEOHASH g Palermo Catania nowhere
        < ["sqc8b49rny0" "sqdtr74hyu0" nil]
        > GEOPOS g Palermo nowhere
        < [["13.36138933897018433" "38.11555639549629859"] nil]
        > GEOADD g XX CH 13.5 38 Palermo 1 1 new
        < :1
        > GEOADD g 181 0 x
        < -ERR invalid longitude,latitude pair 181.000000,0.000000
        > GEOADD g 1 x x
        < -ERR value is not a valid float
        > GEOADD g 1 2
        < -ERR wrong number of arguments for 'geoadd' command
        "#,
    );
}

#[test]
fn circles_and_boxes_are_searched() {
    check(
        r#"
        > GEOADD g 13.361389 38.115556 Palermo 15.087269 37.502669 Catania 12.758489 38.788135 edge1 17.241510 38.788135 edge2
        < :4
        > GEOSEARCH g FROMLONLAT 15 37 BYRADIUS 200 km ASC
        < ["Catania" "Palermo"]
        > GEOSEARCH g FROMLONLAT 15 37 BYBOX 400 400 km DESC WITHDIST
        < [["edge1" "279.7405"] ["edge2" "279.7403"] ["Palermo" "190.4424"] ["Catania" "56.4413"]]
        > GEOSEARCH g FROMMEMBER Palermo BYRADIUS 1 m WITHHASH WITHCOORD
        < [["Palermo" :3479099956230698 ["13.36138933897018433" "38.11555639549629859"]]]
        > GEOSEARCH g FROMMEMBER nowhere BYRADIUS 1 m
        < -ERR could not decode requested zset member
        > GEOSEARCH g FROMLONLAT 15 37 BYRADIUS 900 km COUNT 1
        < ["Catania"]
        > GEOSEARCH g FROMLONLAT 15 37 BYRADIUS 900 km ANY
        < -ERR the ANY argument requires COUNT argument
        > GEOSEARCH g FROMLONLAT 15 37 ASC COUNT 3
        < -ERR exactly one of BYRADIUS and BYBOX can be specified for GEOSEARCH
        > GEOSEARCHSTORE t g FROMLONLAT 15 37 BYRADIUS 200 km
        < :2
        > ZRANGE t 0 -1
        < ["Palermo" "Catania"]
        > GEORADIUS g 15 37 200 km STOREDIST t
        < :2
        > ZRANGE t 0 -1
        < ["Catania" "Palermo"]
        > GEORADIUS g 15 37 200 km WITHDIST STORE t
        < -ERR STORE option in GEORADIUS is not compatible with WITHDIST, WITHHASH and WITHCOORD options
        > GEORADIUSBYMEMBER_RO g Catania 1 km
        < ["Catania"]
        > GEORADIUS_RO g 15 37 200 km STORE t
        < -ERR syntax error
        > GEOSEARCHSTORE t none FROMLONLAT 15 37 BYRADIUS 200 km
        < :0
        > EXISTS t
        < :0
        "#,
    );
}

#[test]
fn a_search_over_the_pole_begins_where_its_middle_is() {
    check(
        r#"
        > GEOADD g 45 65 n1 -135 85.05 n2
        < :2
        > GEORADIUSBYMEMBER g n1 5009431 m
        < ["n1" "n2"]
        "#,
    );
}
