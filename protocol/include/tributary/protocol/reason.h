#pragma once
// The reasons why processes refuse something, take another path, choose a path, or move to other trees. Each reason has
// a code for programs, which never changes, and a row in kReasons; docs/operations/messages.md has the same rows. The
// sentence with the facts of one case is written where the reason arises.
//
// A code travels at the end of its sentence, in brackets: "no token was given [no-token]". So it passes through frames,
// logs and errors that carry a sentence, and a program that does not know it shows it to people. JSON has the code in a
// member of its own.
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "tributary/protocol/error.h"

namespace tributary {

/// Add new reasons at the end of their kind, with a row in kReasons and in docs/operations/messages.md.
enum class Reason : std::uint8_t {
  none,
  // Choices.
  one_rank,
  one_host,
  path_is_fallback,
  tree_is_faster,
  ranks_are_faster,
  tuning_off,
  tuning_rule,
  trees_not_chosen,
  collnet_off,
  // Fallbacks.
  no_manager,
  manager_unreachable,
  manager_timed_out,
  manager_late,
  manager_busy,
  manager_failed,
  group_forgotten,
  trees_forming,
  forming_timed_out,
  aggregator_lost,
  aggregator_silent,
  aggregator_hangs,
  rank_gone,
  ranks_disagree,
  lane_broken,
  unequal_security,
  no_way_to_trees,
  rdma_device_gone,
  rdma_connection_lost,
  no_shared_memory,
  changed_records,
  // Moves.
  moved_to_better_trees,
  draining,
  aggregator_back,
  other_address,
  capacity_changed,
  reservation_began,
  // Denials of the manager.
  no_token,
  wrong_token,
  token_expired,
  token_not_yet_valid,
  token_revoked,
  unknown_certificate,
  not_allowed,
  too_many_requests,
  too_many_groups,
  too_many_aggregators,
  no_leader,
  no_tree,
  quota_groups,
  quota_lanes,
  quota_memory,
  quota_rate,
  security,
  reserved,
  waiting,
  preempted,
  not_in_topology,
  store_blocked,
  // Denials of an aggregator.
  no_key,
  join_malformed,
  join_token_forged,
  join_token_expired,
  join_token_elsewhere,
  old_leadership,
  join_contradicts,
  joined_already,
  lane_ended,
  join_late,
  join_security,
  no_memory,
  tenant_limit,
};

enum class ReasonKind : std::uint8_t {
  denial,    // a process refuses what another asks for
  fallback,  // ranks do without trees, or without the faster connection
  choice,    // a setting or the tuning chooses a path
  move,      // trees are given up because of other trees, although they work
};

struct ReasonRow {
  Reason reason;
  std::string_view code;
  ReasonKind kind;
  std::string_view meaning;
  std::string_view remedy;  // empty: nothing need be done
};

inline constexpr ReasonRow kReasons[]{
    {Reason::one_rank, "one-rank", ReasonKind::choice,
     "the communicator has a single rank, which has nothing to reduce", ""},
    {Reason::one_host, "one-host", ReasonKind::choice, "all ranks are on one host, and sum in its shared memory",
     "TRIBUTARY_LOCAL=off sends the data of every rank to the aggregators"},
    {Reason::path_is_fallback, "path-is-fallback", ReasonKind::choice, "the settings choose the fallback",
     "unset TRIBUTARY_PATH to use trees"},
    {Reason::tree_is_faster, "tree-is-faster", ReasonKind::choice,
     "the cost model expects the least time through a tree", ""},
    {Reason::ranks_are_faster, "ranks-are-faster", ReasonKind::choice,
     "the cost model expects the least time between the ranks", "TRIBUTARY_TUNING=off uses trees all the same"},
    {Reason::tuning_off, "tuning-off", ReasonKind::choice, "the tuning is off, so a tree is used whenever there is one",
     ""},
    {Reason::tuning_rule, "tuning-rule", ReasonKind::choice, "a rule of the tuning table chooses the path",
     "run tributary perf --tune again if links or hosts have changed"},
    {Reason::trees_not_chosen, "trees-not-chosen", ReasonKind::choice,
     "trees were ready, and the tuning let no operation of the communicator take them",
     "look at tributary explain; set TRIBUTARY_TUNING=off"},
    {Reason::collnet_off, "collnet-off", ReasonKind::choice,
     "the NCCL plugin leaves the sums to NCCL, because a rank found no manager that answers",
     "read the log of the rank that the line names"},

    {Reason::no_manager, "no-manager", ReasonKind::fallback, "no manager is configured, so there can be no tree",
     "set TRIBUTARY_MANAGER to its URL, or TRIBUTARY_PATH=fallback if no tree is wanted"},
    {Reason::manager_unreachable, "manager-unreachable", ReasonKind::fallback,
     "rank 0 cannot connect to the manager, or does not believe its certificate; it tries again",
     "check that the manager runs, the firewall, the URL and the certificate"},
    {Reason::manager_timed_out, "manager-timed-out", ReasonKind::fallback,
     "the manager did not answer rank 0 in time; rank 0 asks again",
     "check that the manager runs, the firewall and the URL"},
    {Reason::manager_late, "manager-late", ReasonKind::fallback,
     "the ranks begin before the manager has answered, and move to trees later", ""},
    {Reason::manager_busy, "manager-busy", ReasonKind::fallback,
     "the manager is at a limit, or no manager leads; rank 0 asks again", "the sentence says which"},
    {Reason::manager_failed, "manager-failed", ReasonKind::fallback,
     "the manager could not do what rank 0 asked for, or its answer cannot be read",
     "look at the manager's log; use one version of Tributary"},
    {Reason::group_forgotten, "group-forgotten", ReasonKind::fallback,
     "the manager does not know the group any more, or refuses the request; rank 0 asks for a new group", ""},
    {Reason::trees_forming, "trees-forming", ReasonKind::fallback,
     "the ranks begin before the trees are ready, and move to them later", ""},
    {Reason::forming_timed_out, "forming-timed-out", ReasonKind::fallback,
     "the trees did not form in time: a rank or an aggregator did not reach its aggregator",
     "check the network between the ranks and aggregators that the line names"},
    {Reason::aggregator_lost, "aggregator-lost", ReasonKind::fallback,
     "the connection to an aggregator has ended; rank 0 asks for trees without it", "look at that aggregator"},
    {Reason::aggregator_silent, "aggregator-silent", ReasonKind::fallback,
     "an aggregator does not answer: it hangs, or the way to it is dead", "look at that aggregator and its links"},
    {Reason::aggregator_hangs, "aggregator-hangs", ReasonKind::fallback,
     "every rank has contributed, and no result comes", "look at the aggregators"},
    {Reason::rank_gone, "rank-gone", ReasonKind::fallback, "a rank has left its lane in mid-operation, or is gone",
     "look at the log of that rank's job"},
    {Reason::ranks_disagree, "ranks-disagree", ReasonKind::fallback, "the ranks called different operations",
     "correct the application"},
    {Reason::lane_broken, "lane-broken", ReasonKind::fallback,
     "a process of the lane broke the protocol, or gave up the lane", "report it with the line: it is a defect"},
    {Reason::unequal_security, "unequal-security", ReasonKind::fallback,
     "the trees have less security than a rank demands", "set the same TRIBUTARY_SECURITY on every rank"},
    {Reason::no_way_to_trees, "no-way-to-trees", ReasonKind::fallback,
     "a rank's device is gone, and no other device reaches the aggregators",
     "check the host's driver and card; run tributary doctor"},
    {Reason::rdma_device_gone, "rdma-device-gone", ReasonKind::fallback,
     "a rank's RDMA device is gone, and its connections go over TCP",
     "check the host's driver and card; run tributary doctor"},
    {Reason::rdma_connection_lost, "rdma-connection-lost", ReasonKind::fallback,
     "an RDMA connection between two ranks broke, and they go on over TCP", "check the network between their hosts"},
    {Reason::no_shared_memory, "no-shared-memory", ReasonKind::fallback,
     "the ranks of a host cannot share its memory, and use its network connections",
     "what the sentence says, for example more room in /dev/shm"},
    {Reason::changed_records, "changed-records", ReasonKind::fallback,
     "sealed connections of an aggregator ended, because bytes were changed on their way",
     "look for the device or process that changes them"},

    {Reason::moved_to_better_trees, "moved-to-better-trees", ReasonKind::move,
     "the manager has better trees, and the group moves to them", ""},
    {Reason::draining, "draining", ReasonKind::move, "an aggregator is drained: groups leave it, and it takes no lane",
     ""},
    {Reason::aggregator_back, "aggregator-back", ReasonKind::move, "an aggregator that the group saw fail is back", ""},
    {Reason::other_address, "other-address", ReasonKind::move,
     "an aggregator of the trees can be reached at a better address, or lost the address that they use", ""},
    {Reason::capacity_changed, "capacity-changed", ReasonKind::move,
     "aggregators or their memory have changed since the group got no tree", ""},
    {Reason::reservation_began, "reservation-began", ReasonKind::move,
     "an exclusive reservation has begun, and has aggregators of the trees", "look at tributary reservations"},

    {Reason::no_token, "no-token", ReasonKind::denial, "the request has no token, and the manager demands one",
     "name a token's file in TRIBUTARY_TOKEN_FILE, token_file or --token-file"},
    {Reason::wrong_token, "wrong-token", ReasonKind::denial,
     "the token is forged, broken, or of another cluster or key", "give the token that this manager takes"},
    {Reason::token_expired, "token-expired", ReasonKind::denial, "the identity token has expired",
     "make a new one: tributary token make"},
    {Reason::token_not_yet_valid, "token-not-yet-valid", ReasonKind::denial, "the identity token is not valid yet",
     "set the clocks of the hosts"},
    {Reason::token_revoked, "token-revoked", ReasonKind::denial, "an administrator has revoked the token",
     "ask for a new token"},
    {Reason::unknown_certificate, "unknown-certificate", ReasonKind::denial, "the client certificate stands for nobody",
     "add an entry to the manager's certificate_file"},
    {Reason::not_allowed, "not-allowed", ReasonKind::denial,
     "the token is right, and its role, scope or owner may not do this",
     "use a token with the role that the sentence names"},
    {Reason::too_many_requests, "too-many-requests", ReasonKind::denial,
     "the caller sends more requests a second than the manager takes", "ask less often"},
    {Reason::too_many_groups, "too-many-groups", ReasonKind::denial, "the manager has as many groups as it takes",
     "end groups that nobody needs"},
    {Reason::too_many_aggregators, "too-many-aggregators", ReasonKind::denial,
     "the manager has as many aggregators as it takes", "remove aggregators that are gone"},
    {Reason::no_leader, "no-leader", ReasonKind::denial, "none of several managers leads at the moment",
     "look at etcd and at the managers' logs if it lasts"},
    {Reason::no_tree, "no-tree", ReasonKind::denial,
     "the planner finds no tree: no aggregator, no memory, no place in the topology",
     "look at tributary plan and tributary aggregators"},
    {Reason::quota_groups, "quota-groups", ReasonKind::denial, "the tenant has as many groups with trees as its quota",
     "wait, or ask for a greater quota"},
    {Reason::quota_lanes, "quota-lanes", ReasonKind::denial, "the tenant has as many lanes as its quota",
     "wait, or ask for a greater quota"},
    {Reason::quota_memory, "quota-memory", ReasonKind::denial,
     "the trees would take more memory than the tenant's quota has left", "wait, or ask for a greater quota"},
    {Reason::quota_rate, "quota-rate", ReasonKind::denial,
     "the trees would take a higher rate than the tenant's quota has left", "wait, or ask for a greater quota"},
    {Reason::security, "security", ReasonKind::denial,
     "the group has less security than the manager, its tenant's entry or the aggregators demand",
     "set TRIBUTARY_SECURITY as the sentence says"},
    {Reason::reserved, "reserved", ReasonKind::denial,
     "the planner finds no tree, and other tenants or jobs have reserved aggregators",
     "look at tributary reservations"},
    {Reason::waiting, "waiting", ReasonKind::denial, "groups of lower classes are about to leave for this group", ""},
    {Reason::preempted, "preempted", ReasonKind::denial, "a group of a higher class has the place, or needs it",
     "wait, or ask for a higher class"},
    {Reason::not_in_topology, "not-in-topology", ReasonKind::denial,
     "an aggregator is on a host that the topology does not have, and gets no tree",
     "correct the aggregator's host_id, or the topology"},
    {Reason::store_blocked, "store-blocked", ReasonKind::denial,
     "the manager's store blocks an earlier change, so nothing can be changed; clients ask again for some seconds",
     "look at the manager's disk or at etcd"},

    {Reason::no_key, "no-key", ReasonKind::denial,
     "the aggregator has not reached its manager yet, and cannot verify tokens",
     "look at the aggregator's log: its URL of the manager and its token"},
    {Reason::join_malformed, "join-malformed", ReasonKind::denial, "a join cannot be read, or is no join",
     "use one version of Tributary"},
    {Reason::join_token_forged, "join-token-forged", ReasonKind::denial,
     "a join's token is not signed by the aggregator's manager",
     "check that ranks and aggregator have the same manager"},
    {Reason::join_token_expired, "join-token-expired", ReasonKind::denial, "a join's token has expired",
     "set the clocks of the hosts; a rank that stood still gets new tokens by itself"},
    {Reason::join_token_elsewhere, "join-token-elsewhere", ReasonKind::denial,
     "a join's token is for another aggregator, lane or place",
     "check that no other aggregator listens at the address"},
    {Reason::old_leadership, "old-leadership", ReasonKind::denial,
     "a manager that no longer leads has signed a join's token", ""},
    {Reason::join_contradicts, "join-contradicts", ReasonKind::denial,
     "a join describes its lane in another way than the joins before it, or lacks tokens",
     "report it with the line: it is a defect"},
    {Reason::joined_already, "joined-already", ReasonKind::denial, "another process has joined at the same place",
     "look for two jobs with the tokens of one"},
    {Reason::lane_ended, "lane-ended", ReasonKind::denial, "the lane of a join has ended", ""},
    {Reason::join_late, "join-late", ReasonKind::denial, "a connection sent no join in time",
     "look for the process that connects, for example a port scanner"},
    {Reason::join_security, "join-security", ReasonKind::denial,
     "a connection has less security than its token demands, or no secret",
     "set the same TRIBUTARY_SECURITY on every rank, and the aggregators' security"},
    {Reason::no_memory, "no-memory", ReasonKind::denial, "the aggregator's memory has no room for the lane",
     "set memory of the aggregator higher, or add aggregators"},
    {Reason::tenant_limit, "tenant-limit", ReasonKind::denial,
     "the tenant is at a limit of the aggregator for connections or joins",
     "look at the setting that the sentence names"},
};
/// The number of values of Reason, with Reason::none.
inline constexpr std::size_t kReasonCount = std::size(kReasons) + 1;

/// Returns the row of a reason, which must not be none.
[[nodiscard]] constexpr const ReasonRow& row_of(Reason reason) noexcept {
  return kReasons[static_cast<std::size_t>(reason) - 1];
}
/// Returns the code; empty: there is no reason.
[[nodiscard]] constexpr std::string_view code_of(Reason reason) noexcept {
  return reason == Reason::none ? std::string_view() : row_of(reason).code;
}
[[nodiscard]] std::string_view to_string(ReasonKind kind) noexcept;
/// Returns none if no reason has this code.
[[nodiscard]] Reason reason_of(std::string_view code) noexcept;

/// Returns the sentence with the code at its end. A sentence that has a code keeps it, and an empty text stays empty.
[[nodiscard]] std::string coded(Reason reason, std::string sentence);
/// The same for a code that another process has sent, and that this one may not know.
[[nodiscard]] std::string coded(std::string_view code, std::string sentence);

struct CodedText {
  Reason reason = Reason::none;
  std::string_view sentence;
};
/// Takes the text apart. Without a code that this program knows, the sentence is the whole text.
[[nodiscard]] CodedText split_code(std::string_view text) noexcept;
/// Cuts a text that is longer than `bytes`: the sentence loses its end, and not the code.
[[nodiscard]] std::string cut_before_code(std::string_view text, std::size_t bytes);

/// Returns an error whose message is the sentence with the code.
[[nodiscard]] inline std::unexpected<Error> fail(Errc code, Reason reason, std::string sentence) {
  return fail(code, coded(reason, std::move(sentence)));
}

}  // namespace tributary
