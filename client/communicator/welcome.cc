#include "client/communicator/welcome.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "client/control/json_number.h"
#include "tributary/protocol/json_reader.h"
#include "tributary/protocol/reason.h"

namespace tributary::client {

using nlohmann::json;

std::string encode(const Welcome& welcome, const Directory& directory, std::uint32_t rank) {
  json body{{"tuning", tuning::encode(welcome.policy)},
            {"local", welcome.local},
            {"members", members_to_json(directory, usual_peers(rank, directory.nranks()))}};
  if (welcome.hosts)
    body["hosts"] = json{{"ranks", hosts::encode(welcome.hosts->map)}, {"port", welcome.hosts->leaders_port}};
  for (const NeighbourProcess& one : welcome.neighbours) body["neighbours"].push_back({one.rank, one.process});
  return body.dump(-1, ' ', false, json::error_handler_t::replace);
}

namespace {

/// Returns the processes that rank 0 tells, kWitnessesMax at most.
std::vector<NeighbourProcess> neighbours_in(const json& welcome) {
  std::vector<NeighbourProcess> neighbours;
  const auto all = welcome.find("neighbours");
  if (all == welcome.end()) return {};
  for (const json& one : *all) {
    if (neighbours.size() == kWitnessesMax) break;
    neighbours.push_back({.rank = json_number<std::uint32_t>(one.at(0)),
                          .process = static_cast<pid_t>(json_number<std::uint32_t>(one.at(1)))});
  }
  return neighbours;
}

}  // namespace

Result<Welcome> decode_welcome(const std::string& body, Membership& membership, std::uint32_t nranks) {
  const auto malformed = [](const std::string& what) { return fail(Errc::corrupt, "rank 0 sent " + what); };
  const json object = json_or_discarded(body);
  Welcome welcome;
  try {
    welcome.local = object.value("local", false);
    membership.learn(object.at("members"));
    auto policy = tuning::decode_policy(object.at("tuning").get<std::string>());
    if (!policy) return malformed(policy.error().message);
    welcome.policy = std::move(*policy);
    welcome.neighbours = neighbours_in(object);
    const auto it = object.find("hosts");
    if (it == object.end()) return welcome;
    auto map = hosts::decode_hosts(it->at("ranks").get<std::string>(), nranks);
    if (!map) return malformed(map.error().message);
    welcome.hosts = Welcome::Hosts{std::move(*map), json_number<std::uint16_t>(it->at("port"))};
  } catch (const std::exception&) {
    return malformed("a malformed table of members");
  }
  return welcome;
}

namespace {

tuning::GroupShape group_shape(const CommunicatorSettings& settings, const Directory& directory,
                               double staging_gbytes) {
  tuning::GroupShape shape{.ranks = settings.nranks};
  shape.ranks_per_host = directory.ranks_of_fullest_address();
  const auto hosts = directory.host_ids();
  shape.link_rate = directory.slowest_link();
  shape.exact = settings.exact;
  shape.leaders = settings.processes != 0;
  shape.staging_gbytes = staging_gbytes;
  shape.one_host = std::ranges::all_of(hosts, [&](const std::string& host) { return host == hosts[0]; });
  return shape;
}

/// Returns the reason why ranks on this path ask for no trees, by the settings; meaningless if they ask for trees.
std::string why_no_trees(const CommunicatorSettings& settings, FirstPath path) {
  if (settings.nranks == 1) return coded(Reason::one_rank, "one rank alone");
  if (path == FirstPath::local) return coded(Reason::one_host, "all ranks are on one host");
  if (settings.path == PathMode::fallback) return coded(Reason::path_is_fallback, "TRIBUTARY_PATH is fallback");
  return coded(
      Reason::no_manager,
      "no manager is configured; set TRIBUTARY_MANAGER to its URL, or TRIBUTARY_PATH=fallback if none is wanted");
}

}  // namespace

void look_at(const std::vector<NeighbourProcess>& processes, const CommunicatorSettings& settings) {
  if (!settings.neighbours) return;
  for (const NeighbourProcess& one : processes) settings.neighbours->learn(one.rank, one.process);
}

tuning::Figures figures_for(const CommunicatorSettings& settings, const Directory& directory,
                            const tuning::TreeShape& trees, double staging_gbytes) {
  const tuning::GroupShape shape = group_shape(settings, directory, staging_gbytes);
  return tuning::with_trees(tuning::default_figures(shape, tuning::cores_here()), trees);
}

tuning::Policy policy_for(const CommunicatorSettings& settings, const Directory& directory,
                          const tuning::TreeShape& trees, double staging_gbytes) {
  const tuning::GroupShape shape = group_shape(settings, directory, staging_gbytes);
  if (settings.require_trees) return tuning::trees_always(shape);
  switch (settings.tuning) {
    case TuningMode::off:
      return tuning::trees_always(shape);
    case TuningMode::automatic:
    case TuningMode::model:
      return tuning::default_policy(shape, tuning::cores_here(), trees);
    case TuningMode::table:
      return tuning::policy_of(settings.tuning_table, shape, trees);
  }
  return {};
}

CoordinatorSettings coordinator_settings(const CommunicatorSettings& settings, const Directory& directory,
                                         FirstPath path, const std::string& between) {
  CoordinatorSettings c;
  c.nranks = settings.nranks;
  c.hosts = directory.host_ids();
  if (settings.exact) c.form_senders = settings.processes != 0 ? FormSenders::members : FormSenders::aggregators;
  c.link_rate = directory.slowest_link();
  c.rail = directory.common_rail();
  c.job = settings.job;
  c.user = settings.user;
  c.priority = settings.priority;
  c.processes = settings.processes;
  c.lanes = settings.lanes;
  if (settings.link_keys) c.packet_security = settings.link_keys->least();
  if (settings.link_keys && settings.link_keys->wanted()) {
    if (const auto exchange = exchange_key_of_group(settings.id.secret)) c.exchange_key = exchange->public_key();
  }
  c.known_as = settings.known_as;
  c.first_commit = path == FirstPath::local ? kCommitLocal : path == FirstPath::by_hosts ? kCommitHosts : 0;
  c.use_trees =
      settings.nranks > 1 && settings.manager_configured && settings.path != PathMode::fallback && c.first_commit == 0;
  c.why_not = path == FirstPath::by_hosts && settings.nranks > 1 ? between : why_no_trees(settings, path);
  const bool only_trees = settings.path == PathMode::in_network || settings.require_trees;
  c.may_move = !only_trees;  // a move to other trees uses the fallback for a short time
  c.require_trees = settings.require_trees;
  c.inquiry_limit = settings.timeout / 5;
  c.timeout = c.finalize_limit = settings.timeout;
  c.join_limit = std::min<transport::Duration>(c.join_limit, settings.timeout / 3);
  c.answer_limit = std::min<transport::Duration>(c.answer_limit, settings.timeout / 3);
  c.begin_within = only_trees ? transport::Duration::max() : settings.begin_within;
  return c;
}

}  // namespace tributary::client
