# Runs the program of Redis's test suite with every connection to the server under test going to a
# random node of a rack: RACK_PORTS has the nodes' ports, RACK_SEED makes the choices repeatable.

set prelude [file normalize [info script]]
set rack_ports $::env(RACK_PORTS)
expr {srand($::env(RACK_SEED))}

rename socket plain_socket
proc socket {args} {
    set port [lindex $args end]
    if {[info exists ::external] && $::external && $port eq $::port && "-server" ni $args} {
        set node [expr {int(rand() * [llength $::rack_ports])}]
        set args [lreplace $args end end [lindex $::rack_ports $node]]
    } elseif {"-server" ni $args} {
        # The suite's worker calls its parent once, when all its procedures are defined.
        adapt
    }
    uplevel 1 [list plain_socket {*}$args]
}

# The suite starts itself as a worker: that one has to go through this file too.
rename exec plain_exec
proc exec {args} {
    set helper [lsearch -glob $args */test_helper.tcl]
    if {$helper >= 0} { lset args $helper $::prelude }
    uplevel 1 [list plain_exec {*}$args]
}

# A client that waits does so at its own node, whose INFO counts it: ask all.
proc blocked_everywhere {} {
    set blocked 0
    foreach node $::rack_ports {
        # As a word this is not the port that is spread.
        set client [redis 127.0.0.1 +$node]
        regexp {blocked_clients:(\d+)} [$client info clients] all here
        incr blocked $here
        $client close
    }
    return $blocked
}

# Before each group of tests the suite sets what the group wants set, and a refusal there would end
# the file. Here the group runs with the settings there are, and its tests show what that means. The
# settings that the plan lists may be refused anywhere.
proc adapt {} {
    if {[info procs strict_r] ne "" || [info procs r] eq ""} return
    rename start_server own_server
    proc start_server {options code} {
        # Every file has a fresh rack: as good as a server of its own, unless that is set up. A
        # second server beside it is not to be had.
        set file [string range [file rootname $::curfile] [string length "tests/"] end]
        if {$file in $::env(RACK_FRESH) && "overrides" ni $options && "config" ni $options} {
            if {[llength $::servers] > 0} {
                return [send_data_packet $::test_server_fd ignore "a second server"]
            }
            set options [string map {external:skip ""} $options]
        }
        uplevel 1 [list own_server $options $code]
    }
    rename s one_node_s
    proc s {args} {
        if {[lindex $args end] eq "blocked_clients"} { return [blocked_everywhere] }
        uplevel 1 [list one_node_s {*}$args]
    }
    rename r strict_r
    proc r {args} {
        set failed [catch {uplevel 1 [list strict_r {*}$args]} result options]
        set outside [expr {[lindex [info level -1] 0] eq "run_external_server_test"}]
        set setting [string tolower [lrange $args 0 2]]
        if {$failed && ($outside || $setting in $::env(RACK_FORGIVEN))} { return "" }
        return -options $options $result
    }
}

set script tests/test_helper.tcl
source ./$script
