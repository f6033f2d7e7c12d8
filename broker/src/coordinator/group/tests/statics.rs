//! Static members (KIP-345): known by their instance id, they may restart without a rebalance.

use super::script::check;

/// Two static members, assigned.
const TWO: &str = "         join a instance=i
           > rebalance: a new member joins; client reason: not provided
           > store gen 0 - []
         join b instance=j
         wait 6000
           > a: joined gen 1 range leader a [a b]
           > b: joined gen 1 range leader a []
         sync a instance=i a=A b=B
           > store gen 1 range [a=A b=B]
           > a: assigned A
         sync b instance=j
           > b: assigned B
";

fn check_after_two(rest: &str) {
    check(&format!("{TWO}{rest}"));
}

#[test]
fn a_restarted_follower_takes_over_its_place() {
    check_after_two(
        "         join b2 instance=j
           > store gen 1 range [a=A b2=B]
           > b2: joined gen 1 range leader a []
         sync b2 instance=j
           > b2: assigned B
         heartbeat a instance=i
           > a: ok
         heartbeat b instance=j
           > b: FENCED_INSTANCE_ID
         commit b instance=j t-0=1
           > b: FENCED_INSTANCE_ID
         join b instance=j
           > b: FENCED_INSTANCE_ID
         heartbeat b
           > b: UNKNOWN_MEMBER_ID",
    );
}

#[test]
fn a_restarted_leader_is_told_to_skip_the_assignment() {
    check_after_two(
        "         join a2 instance=i
           > store gen 1 range [a2=A b=B]
           > a2: joined gen 1 range leader a2 [a2 b] skip
         sync a2 instance=i
           > a2: assigned A",
    );
}

#[test]
fn an_old_restarted_leader_is_shown_its_former_id_as_leader() {
    check_after_two(
        "         join a2 instance=i v=8
           > store gen 1 range [a2=A b=B]
           > a2: joined gen 1 range leader a []
         heartbeat a2 instance=i
           > a2: ok",
    );
}

#[test]
fn a_restart_that_changes_the_protocol_rebalances() {
    check(
        "join a instance=i protos=range,rr
           > rebalance: a new member joins; client reason: not provided
           > store gen 0 - []
         wait 3000
           > a: joined gen 1 range leader a [a]
         sync a instance=i a=A
           > store gen 1 range [a=A]
           > a: assigned A
         join a2 instance=i protos=rr,range
           > rebalance: a static member changed the protocol; client reason: not provided
           > a2: joined gen 2 rr leader a2 [a2]",
    );
}

#[test]
fn a_restart_during_the_assignment_rebalances_and_fences_the_parked() {
    check(
        "join a instance=i
           > rebalance: a new member joins; client reason: not provided
           > store gen 0 - []
         join b instance=j
         wait 6000
           > a: joined gen 1 range leader a [a b]
           > b: joined gen 1 range leader a []
         sync b instance=j
         join b2 instance=j
           > rebalance: a static member was replaced; client reason: not provided
           > b: FENCED_INSTANCE_ID
         sync a instance=i a=A b=B
           > a: REBALANCE_IN_PROGRESS
         join b3 instance=j
           > b2: FENCED_INSTANCE_ID
         join a instance=i
           > a: joined gen 2 range leader a [a b3]
           > b3: joined gen 2 range leader a []",
    );
}

#[test]
fn a_static_member_that_does_not_rejoin_stays_until_its_session_ends() {
    check(
        "join a instance=i session=100000 rebalance=20000
           > rebalance: a new member joins; client reason: not provided
           > store gen 0 - []
         join b session=10000 rebalance=20000
           > b: MEMBER_ID_REQUIRED
         join b session=10000 rebalance=20000
         wait 6000
           > b: joined gen 1 range leader a []
           > a: joined gen 1 range leader a [b a]
         sync a instance=i a=A b=B
           > store gen 1 range [b=B a=A]
           > a: assigned A
         sync b
           > b: assigned B
         join b protos=range/new rebalance=20000
           > rebalance: a member's metadata changed; client reason: not provided
         wait 20000
           > b: joined gen 2 range leader b [b a]",
    );
}

#[test]
fn an_administrator_removes_a_static_member_by_its_instance_id() {
    check_after_two(
        "         remove j
           > rebalance: members left:  (no reason given)
           > j: NONE
         remove nobody
           > nobody: UNKNOWN_MEMBER_ID
         heartbeat b instance=j
           > b: UNKNOWN_MEMBER_ID
         join a instance=i
           > a: joined gen 2 range leader a [a]",
    );
}

#[test]
fn instance_ids_survive_a_restart_of_the_coordinator() {
    check_after_two(
        "         restart
         join b2 instance=j
           > store gen 1 range [a=A b2=B]
           > b2: joined gen 1 range leader a []
         heartbeat b instance=j
           > b: FENCED_INSTANCE_ID",
    );
}

#[test]
fn a_restarted_member_syncs_in_the_place_of_its_former_self() {
    check(
        "join a instance=i session=1800000 rebalance=20000
           > rebalance: a new member joins; client reason: not provided
           > store gen 0 - []
         join b instance=j session=1800000 rebalance=20000
         wait 6000
           > a: joined gen 1 range leader a [a b]
           > b: joined gen 1 range leader a []
         sync a instance=i a=A b=B
           > store gen 1 range [a=A b=B]
           > a: assigned A
         join b2 instance=j session=1800000 rebalance=20000
           > store gen 1 range [a=A b2=B]
           > b2: joined gen 1 range leader a []
         sync b2 instance=j
           > b2: assigned B
         wait 30000
         heartbeat a instance=i
           > a: ok",
    );
}
