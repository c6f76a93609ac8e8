#include "tree-manager/topology/import/ibnetdiscover.h"

#include <array>
#include <optional>
#include <unordered_set>

#include "service-kit/units.h"
#include "tree-manager/topology/import/ib_names.h"

namespace tributary::manager {
namespace {

constexpr std::size_t kDistinctDigits = 6;  // digits of a GUID, used if two switches have the same name

enum class IbKind : std::uint8_t { adapter, fabric_switch, router };

std::optional<IbKind> kind_of(std::string_view word) {
  if (word == "Switch" || word == "SW") return IbKind::fabric_switch;
  if (word == "Ca" || word == "CA") return IbKind::adapter;
  if (word == "Rt" || word == "RT") return IbKind::router;
  return std::nullopt;
}

/// One end of a cable.
struct IbEnd {
  std::string id;  // "S-0000000000200004", or a GUID in the list of ports
  std::uint32_t port = 0;
};

/// Removes the part between `open` and `close` from the beginning of `text`, and returns it; nothing if the text does
/// not begin with `open`.
std::optional<std::string_view> enclosed(std::string_view& text, char open, char close) {
  if (!text.starts_with(open)) return std::nullopt;
  const std::size_t end = text.find(close, 1);
  if (end == std::string_view::npos) return std::nullopt;
  const std::string_view inside = text.substr(1, end - 1);
  text.remove_prefix(end + 1);
  return inside;
}

class IbReader {
 public:
  explicit IbReader(const std::string& file) : notes_(file), table_(fabric_) {}

  Result<FoundFabric> read(std::string_view text) {
    while (!text.empty() && !full_) {
      const std::string_view line = next_line(text);
      ++line_;
      if (!trimmed(line).empty() && !line.starts_with('#')) read_line(line);
    }
    if (nodes_seen_ == 0 && !notes_.any_wrong()) {
      notes_.wrong(
          std::max<std::size_t>(line_, 1),
          "no node of an InfiniBand fabric is here; expected is the output of ibnetdiscover or ibnetdiscover -p");
    }
    if (auto ok = notes_.status(); !ok) return std::unexpected(ok.error());
    if (full_) return std::unexpected(*full_);
    join();
    report();
    return std::move(fabric_);
  }

 private:
  void read_line(std::string_view line) {
    if (line.starts_with('[')) return read_port(line);
    std::string_view rest = line;
    const auto kind = kind_of(next_word(rest));
    if (kind && (line.starts_with("SW") || line.starts_with("CA") || line.starts_with("RT"))) {
      return read_listed_port(*kind, rest);
    }
    if (kind) return read_node(*kind, rest);
    constexpr std::array<std::string_view, 8> kKnown = {
        "vendid=", "devid=", "sysimgguid=", "switchguid=", "caguid=", "rtguid=", "Chassis", "Non-Chassis"};
    for (const std::string_view word : kKnown) {
      if (line.starts_with(word)) return;
    }
    notes_.skipped(line_, line);
  }

  /// Reads `36 "S-0000000000200004"  # "ib-leaf-3" base port 0 lid 7 lmc 0`.
  void read_node(IbKind kind, std::string_view rest) {
    here_.reset();
    static_cast<void>(next_word(rest));  // the number of ports
    rest = trimmed(rest);
    const auto id = enclosed(rest, '"', '"');
    const std::size_t hash = rest.find('#');
    std::string_view comment = hash == std::string_view::npos ? std::string_view() : trimmed(rest.substr(hash + 1));
    const auto name = enclosed(comment, '"', '"');
    if (!id || id->size() < 3) return notes_.wrong(line_, "a node's identity in quotes is expected, as \"S-0002c9\"");
    note_node(kind, std::string(*id), id->substr(2), name.value_or(std::string_view()));
    here_ = std::string(*id);
  }

  /// Reads `[10]  "H-0000000000100000"[1](100001)  # "node-001" lid 1 4xSDR`; a port's GUID may follow its number.
  void read_port(std::string_view line) {
    if (!here_) return notes_.wrong(line_, "a port stands before the first node");
    const std::string_view rate_text = line;
    const auto port = port_number(line);
    while (line.starts_with('(') || line.starts_with('[')) {
      if (!enclosed(line, line.front(), line.front() == '(' ? ')' : ']')) break;
    }
    line = trimmed(line);
    const auto far = enclosed(line, '"', '"');
    const auto far_port = port_number(line);
    if (!port || !far || !far_port) {
      return notes_.wrong(line_, "a port is expected, as [1] \"S-0002c9\"[2] # \"name\" lid 1 4xHDR");
    }
    note_link({*here_, *port}, {std::string(*far), *far_port}, last_rate(rate_text));
  }

  /// Reads `17 1 0x0000000000100017 4x SDR - SW 7 13 0x0000000000200004 ( 'node-012' - 'ib-leaf-3' )`. The line of a
  /// port without a cable has only its own node's name.
  void read_listed_port(IbKind kind, std::string_view rest) {
    const auto near = listed_end(rest);
    const std::string_view width = next_word(rest);
    const std::string_view speed = next_word(rest);
    if (!near) return notes_.wrong(line_, "a port is expected, as CA 17 1 0x0002c9 4x HDR - SW 7 13 0x0002c9 ( ... )");
    ++nodes_seen_;
    rest = trimmed(rest);
    if (!rest.starts_with('-')) return;
    rest.remove_prefix(1);
    const auto far_kind = kind_of(next_word(rest));
    const auto far = listed_end(rest);
    rest = trimmed(rest);
    constexpr std::string_view kBegin = "( '", kMiddle = "' - '", kEnd = "' )";
    const std::size_t middle = rest.find(kMiddle);
    if (!far_kind || !far || !rest.starts_with(kBegin) || !rest.ends_with(kEnd) || middle == std::string_view::npos ||
        middle < kBegin.size() || middle + kMiddle.size() + kEnd.size() > rest.size()) {
      return notes_.wrong(line_,
                          "the other end of the cable is expected after '-', and both names in ( '...' - '...' )");
    }
    const std::string_view near_name = rest.substr(kBegin.size(), middle - kBegin.size());
    rest = rest.substr(0, rest.size() - kEnd.size()).substr(middle + kMiddle.size());
    note_node(kind, near->id, near->id, near_name);
    note_node(*far_kind, far->id, far->id, rest);
    note_link(*near, *far, ib_rate(width, speed));
  }

  /// Reads `17  1 0x0000000000100017`: local identifier, port, GUID.
  static std::optional<IbEnd> listed_end(std::string_view& rest) {
    static_cast<void>(next_word(rest));
    const auto port = service::parse_number<std::uint32_t>(next_word(rest));
    const std::string_view guid = next_word(rest);
    if (!port || !guid.starts_with("0x") || guid.size() < 3) return std::nullopt;
    return IbEnd{std::string(guid.substr(2)), *port};
  }

  static std::optional<std::uint32_t> port_number(std::string_view& text) {
    const auto number = enclosed(text, '[', ']');
    return number ? service::parse_number<std::uint32_t>(*number) : std::nullopt;
  }

  /// Returns the rate at the end of the line. Names before it may contain any text.
  static std::uint64_t last_rate(std::string_view line) {
    while (!line.empty()) {
      line = trimmed(line);
      const std::size_t begin = line.find_last_of(" \t") + 1;
      if (const std::uint64_t rate = ib_rate(line.substr(begin)); rate != 0) return rate;
      line = line.substr(0, begin);
    }
    return 0;
  }

  void note_node(IbKind kind, const std::string& id, std::string_view guid, std::string_view description) {
    ++nodes_seen_;
    if (ends_.contains(id) || left_out_.contains(id)) return;
    if (kind == IbKind::router) return leave_out(id, routers_);
    if (kind == IbKind::adapter && is_aggregation_node(description)) return leave_out(id, aggregation_nodes_);
    FoundNode node{.is_switch = kind == IbKind::fabric_switch};
    std::string key = id;
    if (node.is_switch) {
      node.name = switch_in_description(description);
      node.distinct = guid.substr(guid.size() - std::min(guid.size(), kDistinctDigits));
      if (node.name.empty()) node.name = "switch-" + std::string(guid);
    } else if (const std::string_view host = host_in_description(description); !host.empty()) {
      node.name = host;
      adapters_.emplace(id, adapter_in_description(description));
      key = "host " + node.name;  // the adapters of one host share its name
    } else {
      node.name = "adapter-" + std::string(guid);
      ++nameless_;
    }
    const auto index = table_.add(key, std::move(node));
    if (!index) return stop(index.error());
    ends_.emplace(id, *index);
  }

  void leave_out(const std::string& id, std::size_t& count) {
    if (left_out_.size() < kFoundNodesMax && left_out_.insert(id).second) ++count;
  }

  /// Both ends of a cable describe it.
  void note_link(const IbEnd& a, const IbEnd& b, std::uint64_t rate) {
    const std::string one = a.id + "/" + std::to_string(a.port), other = b.id + "/" + std::to_string(b.port);
    if (!told_.insert(one < other ? one + " " + other : other + " " + one).second) return;
    if (cables_.size() >= kFoundLinksMax) {
      return stop({Errc::exhausted, "more than " + std::to_string(kFoundLinksMax) + " links"});
    }
    cables_.push_back({a.id, b.id, rate});
  }

  /// Joins the nodes when all of them are known.
  void join() {
    for (const Cable& cable : cables_) {
      if (left_out_.contains(cable.a) || left_out_.contains(cable.b)) continue;
      const auto a = ends_.find(cable.a), b = ends_.find(cable.b);
      if (a == ends_.end() || b == ends_.end()) {
        ++dangling_;
        continue;
      }
      const auto adapter = adapters_.find(adapters_.contains(cable.a) ? cable.a : cable.b);
      const std::string_view interface = adapter == adapters_.end() ? std::string_view() : adapter->second;
      // There are at most as many links as cables.
      static_cast<void>(table_.link(a->second, b->second, cable.rate, interface));
    }
  }

  void report() {
    notes_.report(fabric_.warnings);
    const auto say = [&](std::size_t count, const std::string& what) {
      if (count != 0) fabric_.warnings.push_back(std::to_string(count) + " " + what);
    };
    say(routers_, "routers were left out: the fabric ends there");
    say(aggregation_nodes_, "aggregation nodes of switches were left out: they are no hosts");
    say(nameless_,
        "adapters do not tell their host: each became a host named by its GUID; set their node descriptions");
    say(dangling_, "links to nodes that the text does not describe were left out");
  }

  void stop(Error error) { full_ = Error{Errc::bad_config, std::move(error.message)}; }

  struct Cable {
    std::string a, b;
    std::uint64_t rate;
  };

  ImportNotes notes_;
  FoundFabric fabric_;
  NodeTable table_;
  std::size_t line_ = 0;
  std::size_t nodes_seen_ = 0, routers_ = 0, aggregation_nodes_ = 0, nameless_ = 0, dangling_ = 0;
  std::optional<std::string> here_;  // the node whose ports are being read
  std::optional<Error> full_;
  std::unordered_map<std::string, std::uint32_t> ends_;    // nodes by their GUIDs
  std::unordered_map<std::string, std::string> adapters_;  // names of hosts' adapters, by their GUIDs
  std::unordered_set<std::string> left_out_;
  std::unordered_set<std::string> told_;
  std::vector<Cable> cables_;
};

}  // namespace

Result<FoundFabric> read_ibnetdiscover(std::string_view text, const std::string& file) {
  return IbReader(file).read(text);
}

bool looks_like_ibnetdiscover(std::string_view text) {
  constexpr int kLinesSeen = 50;
  for (int i = 0; i < kLinesSeen && !text.empty(); ++i) {
    const std::string_view line = next_line(text);
    if (line.starts_with("vendid=0x") || line.starts_with("# Topology file: generated")) return true;
    std::string_view rest = line;
    if (!kind_of(next_word(rest))) continue;
    static_cast<void>(next_word(rest));
    rest = trimmed(rest);
    if (rest.starts_with('"')) return true;
    static_cast<void>(next_word(rest));
    if (trimmed(rest).starts_with("0x")) return true;
  }
  return false;
}

}  // namespace tributary::manager
