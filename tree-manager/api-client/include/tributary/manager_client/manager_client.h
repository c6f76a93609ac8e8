#pragma once
// A small client of the manager's REST interface, for other processes: the aggregator daemon, ranks, the command line.
// It blocks, throws no exceptions, writes no log, and hides all HTTP types from its callers.
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "service-kit/tls/tls_context.h"
#include "tributary/protocol/credential.h"
#include "tributary/protocol/descriptor.h"
#include "tributary/protocol/error.h"
#include "tributary/protocol/late_rank.h"
#include "tributary/protocol/sum_form.h"
#include "tributary/protocol/token_page.h"

namespace tributary::manager_client {

struct ManagerSettings {
  // "http://host:7470", or the same with https; the port may be left out, an IPv6 address stands in brackets. Commas
  // separate several managers of one cluster.
  std::string url;
  std::string token;                               // the job token or the aggregator token; may be empty for reads
  std::chrono::milliseconds connect_limit{2000};   // for the name look-up and connecting to all addresses of the name
  std::chrono::milliseconds request_limit{10000};  // for the whole request, connecting included
  std::uint64_t answer_bytes_max = 256U << 20;
  std::shared_ptr<service::TlsContext> tls{};  // for https URLs; see tls_for()
  /// Called when the manager refuses the token: returns the token to use from now on, which may be the same.
  std::function<std::string()> fresh_token{};
};

/// Opens the files that decide which managers a client believes over HTTPS; nullptr if the list has no https URL.
/// Returns the errors of TlsContext::open().
[[nodiscard]] Result<std::shared_ptr<service::TlsContext>> tls_for(std::string_view urls,
                                                                   const service::TlsFiles& files);

struct AggregatorRegistration {
  std::string name;  // at most 63 bytes; empty: the manager makes a name from host and port
  std::string host;  // name of its host in the topology; at most 63 bytes
  Endpoint data;     // address for ranks; a wildcard host (0.0.0.0, ::) means the address from which this request came
  Endpoint http;     // address of metrics and health; a wildcard host means the same as in `data`
  std::uint64_t memory_bytes = 0;               // memory that lanes may use
  std::uint32_t children_max = kChildrenMax;    // most children in a lane, 1 to kChildrenMax
  std::uint64_t line_rate_bits_per_second = 0;  // rate of its network interface; 0: the topology's rate, or a guess
  std::string version;
  ExchangePublicKey exchange_key{};  // source of the keys that seal packets to it
  // Further addresses like `data`, one for each further device: lane i uses the (i mod n)th of all n addresses, at most
  // 16. An older manager, which knows one address only, refuses them.
  std::vector<Endpoint> data_more{};
  std::vector<std::uint32_t> data_down{};  // the indices of addresses that are down; `data` is 0
  bool draining = false;                   // the aggregator still refuses new lanes, because of an earlier answer
  std::uint64_t incarnation = 0;           // number of this process's last registration; 0: none
  PacketSecurity security = PacketSecurity::off;  // the least security of the groups that it serves
};

/// The manager's keys.
struct ManagerKeys {
  PublicKey public_key{};            // verifies tokens
  ExchangePublicKey exchange_key{};  // for the secrets of sealed connections
};

struct RegistrationAnswer {
  std::string name;                 // the name that the manager accepted, and that tokens contain
  std::uint64_t incarnation = 0;    // number of this registration; every renewal carries it
  std::uint32_t lease_seconds = 0;  // length of the lease; renew at least three times in it
  ManagerKeys keys{};
};

struct AggregatorLoad {
  std::uint64_t memory_in_use_bytes = 0;
  std::uint32_t lanes_active = 0;
  std::uint32_t sessions = 0;
  std::uint64_t contribution_bytes_total = 0;
  std::uint64_t changed_records = 0;  // sealed connections that ended because of changed records, since the start
  std::vector<LateRank> late{};       // at most kLateRanksMax; told only to a manager that takes them
};

enum class AggregatorState : std::uint8_t {
  active,
  draining,  // end the lanes in order, renew until this is done, then unregister
  unknown,   // the lease had ended, or another process has taken the name: register again
};

struct GroupRequest {
  std::string job;                  // at most 63 bytes; empty: "unnamed"
  std::string user{};               // user of the ranks' processes, at most 63 bytes; empty: not known
  std::uint32_t processes = 0;      // number of ranks that the members represent, with themselves; 0: only themselves
  std::vector<std::string> hosts;   // index: rank; that rank's host in the topology
  std::uint32_t lanes = 0;          // wanted number, 1 to kLanesMax; 0: as many as save time
  bool lane_weights = false;        // true: the ranks deal segments by the lanes' weights
  std::string rail{};               // rail on which all ranks have their device; empty: lanes take all rails in turn
  std::uint32_t window = 0;         // number of segments; 0: the manager's default
  std::uint32_t segment_bytes = 0;  // 0: the manager's default
  FormSenders form_senders = FormSenders::nobody;  // needs longer buffers if anybody sends forms
  PacketSecurity packet_security = PacketSecurity::off;
  ExchangePublicKey exchange_key{};  // key of the ranks; zeros without packet_security or proofs
  std::string request_id{};          // at most 63 bytes; the same id gives the same group; empty: always a new group
  std::uint32_t levels = 0;  // exact number of aggregators between a rank and the result; 0: the planner chooses
  std::uint64_t link_rate_bits_per_second = 0;  // rate of the slowest member's link; 0: not known
  // To measure the way to one aggregator: its name. The group's trees then use only it, with a lane for each of its
  // live addresses. Empty: the planner chooses. An older manager refuses this member.
  std::string aggregator{};
  std::string priority{};  // low, normal or high; empty: normal. An older manager refuses this member
};

/// Counts of rank 0 since the start: payload bytes of ended operations.
struct GroupTraffic {
  std::uint64_t operations = 0;
  std::uint64_t bytes_in_network = 0;
  std::uint64_t bytes_between_ranks = 0;
  std::uint64_t bytes_in_shared_memory = 0;
};

struct GroupAnswer {
  // The manager's answer with trees. The descriptor has the places of at most kPlacesInDescriptorMax ranks; see
  // group_places() for more.
  GroupDescriptor descriptor;             // empty: use the fallback; `group` and `epoch` are still valid for a rebuild
  std::string record{};                   // the argument of adopt_group(); must not be changed
  std::uint32_t retry_after_seconds = 0;  // with an empty descriptor: ask for a rebuild after this time
};

struct GroupLease {
  bool known = false;  // false: the lease had ended; ask for a new group
  std::uint32_t lease_seconds = 0;
  std::uint32_t epoch = 0;       // the newest epoch of this group
  bool rebuild_advised = false;  // a tree, or a better one, is possible: call rebuild_group when convenient
  bool leave_trees = false;      // the group must give up its trees, and may then ask for others
  std::string reason;            // reason of rebuild_advised or leave_trees
  std::string record{};          // a fresh record, if the caller wanted one
  PathRates rates{};             // rates of the group's trees at `epoch`, beside other groups; zeros: not known
  std::vector<LateRank> late{};  // the late ranks of the group, the latest first
};

/// The manager, or several managers of which one leads. A call makes a connection (over https it may use the last one),
/// and blocks until the answer or a limit comes. Calls on one client are serialised; different clients are independent.
///
/// With several managers, a call goes to the manager that answered last. If this manager cannot be reached, does not
/// know the leader, or shows a lower fence than another manager has shown, the call goes to the next one. So two
/// managers may get the call, and every call may be made twice. Each of n managers gets an n-th of request_limit at a
/// time. While a manager lives but none leads, or the manager's store blocks, the call is repeated until request_limit
/// has passed; this holds for a single manager, too.
///
/// Errors: unreachable (no connection, or no answer within the limit; the sentence has the URL and advice), denied
/// (token missing or wrong), bad_argument (the manager refused a value), peer_gone (the manager does not know this
/// aggregator or group), mismatch (a conflict of states, such as a stale epoch or a name in use), exhausted (no room in
/// the manager's store), retry (the manager is busy), corrupt (the answer makes no sense), aborted (cancel was called).
class ManagerClient {
 public:
  /// Makes a client, but no connection yet. Errc::bad_argument: `url` is no URL. Errc::bad_config: `url` is https, and
  /// there is no `tls`.
  [[nodiscard]] static Result<ManagerClient> create(ManagerSettings settings);
  ManagerClient(ManagerClient&&) noexcept;
  ManagerClient& operator=(ManagerClient&&) noexcept;
  ~ManagerClient();

  [[nodiscard]] Result<RegistrationAnswer> register_aggregator(const AggregatorRegistration& registration);
  /// `draining`: true if this aggregator still drains when it makes this call. The manager plans trees over it again
  /// only after a renewal with false. If `keys` is not null, sets it to the keys in the answer; an older manager leaves
  /// them out.
  [[nodiscard]] Result<AggregatorState> renew_aggregator(std::string_view name, std::uint64_t incarnation,
                                                         const AggregatorLoad& load,
                                                         const std::vector<std::uint32_t>& data_down = {},
                                                         bool draining = false,
                                                         std::optional<ManagerKeys>* keys = nullptr);
  [[nodiscard]] Status unregister_aggregator(std::string_view name);

  [[nodiscard]] Result<GroupAnswer> request_group(const GroupRequest& group);
  /// Gets the places of `count` ranks, from rank `first` on, in the trees of this epoch; at most kTokenPageRanksMax.
  [[nodiscard]] Result<TokenPage> group_places(std::uint64_t group, std::uint32_t epoch, std::uint32_t first,
                                               std::uint32_t count);
  /// Asks for trees at epoch + 1, without the `failed` aggregators. A repeated request gets the same epoch. `in_use`:
  /// the present trees work, and the group uses them until it has moved, as after GroupLease::rebuild_advised. Their
  /// memory stays reserved until then. An empty answer means that the group keeps its present trees.
  [[nodiscard]] Result<GroupAnswer> rebuild_group(std::uint64_t group, std::uint32_t epoch,
                                                  const std::vector<std::string>& failed, bool in_use = false);
  /// `want_record`: the answer has a fresh record, which is younger than the record that came with the trees. `traffic`
  /// is shown in listings; an older manager refuses it.
  [[nodiscard]] Result<GroupLease> renew_group(std::uint64_t group, bool want_record = false,
                                               const std::optional<GroupTraffic>& traffic = std::nullopt);
  /// Renews a group that the manager has lost, or knows with older trees. The manager restores the group from the
  /// record that it gave last. The index of `hosts` is the rank, as in the request. Errc::bad_argument, mismatch: the
  /// manager refuses.
  [[nodiscard]] Result<GroupLease> adopt_group(std::uint64_t group, const std::string& record,
                                               const std::vector<std::string>& hosts);
  /// Gives the group back, and reports the aggregators that it `lost`, as rebuild_group() reports those that failed; at
  /// most the first kLostMax. A second call for the same group succeeds, too.
  [[nodiscard]] Status delete_group(std::uint64_t group, const std::vector<std::string>& lost = {});
  static constexpr std::size_t kLostMax = 64;  // names that fit a request's head

  /// Gets any path, such as "/v1/trees".
  [[nodiscard]] Result<nlohmann::json> get(std::string_view path);
  /// Calls any path with any method that carries JSON; for a null body it sends no body. Returns null for an empty
  /// answer.
  [[nodiscard]] Result<nlohmann::json> request(std::string_view method, std::string_view path,
                                               const nlohmann::json& body);

  /// Returns the highest fence that answers have shown; 0: none. Any thread may call it.
  [[nodiscard]] std::uint64_t fence() const noexcept;
  /// Notes a fence that the caller has seen elsewhere. Any thread may call it.
  void note_fence(std::uint64_t fence) noexcept;

  /// Ends the call in progress, and all later calls, with Errc::aborted. Any thread may call it.
  void cancel() noexcept;

 private:
  struct Impl;
  explicit ManagerClient(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace tributary::manager_client
