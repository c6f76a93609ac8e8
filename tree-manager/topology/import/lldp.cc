#include "tree-manager/topology/import/lldp.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <unordered_set>

#include "service-kit/units.h"
#include "tributary/protocol/assert.h"

namespace tributary::manager {
namespace {

using nlohmann::json;

constexpr int kDepthMax = 16;

/// A neighbour, or the machine itself, as it describes itself.
struct Machine {
  std::string name;  // the system's name, else the identity of its chassis
  bool forwards = false;
};

/// Removes the first JSON value from a text with several values, and returns it.
std::string_view next_document(std::string_view& text) {
  std::size_t depth = 0;
  bool quoted = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quoted) {
      if (c == '\\') ++i;
      if (c == '"') quoted = false;
      continue;
    }
    if (c == '"') quoted = true;
    if (c == '{' || c == '[') ++depth;
    if ((c != '}' && c != ']') || depth == 0) continue;
    --depth;
    if (depth == 0) {
      const std::string_view document = text.substr(0, i + 1);
      text.remove_prefix(i + 1);
      return document;
    }
  }
  return std::exchange(text, {});
}

/// Form json0 wraps every value in a list: this function returns the value, or the first value of the list, or null if
/// there is none.
const json& unwrapped(json&&) = delete;  // the value must outlive the result
const json& unwrapped(const json& value) {
  static const json kNull;
  if (!value.is_array()) return value;
  return value.empty() ? kNull : value.front();
}

const json& member(const json& object, const char* name) {
  static const json kNull;
  const json& inner = unwrapped(object);
  if (!inner.is_object()) return kNull;
  const auto found = inner.find(name);
  return found == inner.end() ? kNull : *found;
}

/// Reads a text in any of these forms: "x", {"value": "x"} and [{"value": "x"}].
std::string value_of(const json& from) {
  const json& inner = unwrapped(from);
  if (inner.is_string()) return inner.get<std::string>();
  const json& value = member(inner, "value");
  return value.is_string() ? value.get<std::string>() : std::string();
}

/// Calls visit(json) for each entry of a list, or for a single value in place of a list.
template <class Visit>
void each(const json& list, const Visit& visit) {
  if (list.is_array()) {
    for (const json& one : list) visit(one);
  } else if (!list.is_null()) {
    visit(list);
  }
}

/// Form json has the system's name as a key: {"node-1": {"id": ...}}; json0 has it as a member: [{"name": ...}].
Machine machine_of(const json& chassis) {
  const json* about = &unwrapped(chassis);
  Machine machine{.name = value_of(member(*about, "name"))};
  if (machine.name.empty() && about->is_object() && about->size() == 1 && !about->contains("id")) {
    machine.name = about->begin().key();
    about = &about->begin().value();
  }
  if (machine.name.empty()) machine.name = value_of(member(*about, "id"));
  each(member(*about, "capability"), [&](const json& one) {
    const json& type = member(one, "type");
    const json& enabled = member(one, "enabled");
    if (!type.is_string() || !enabled.is_boolean() || !enabled.get<bool>()) return;
    if (type == "Bridge" || type == "Router") machine.forwards = true;
  });
  return machine;
}

class LldpReader {
 public:
  explicit LldpReader(const LldpOptions& options)
      : table_(fabric_), hosts_(options.hosts.begin(), options.hosts.end()), rails_(options.rails) {}

  Result<FoundFabric> read(const std::vector<LldpText>& texts) {
    for (const LldpText& text : texts) {
      if (auto ok = read_text(text); !ok) return std::unexpected(ok.error());
    }
    if (fabric_.nodes.empty()) {
      return fail(Errc::bad_config, (texts.empty() ? std::string("lldp") : texts.front().file) +
                                        ": no neighbour is here; expected is the output of lldpcli -f json show "
                                        "neighbors details");
    }
    if (auto ok = join(); !ok) return std::unexpected(ok.error());
    if (others_ != 0) {
      fabric_.warnings.push_back(std::to_string(others_) +
                                 " neighbours seen by protocols other than LLDP were left out");
    }
    return std::move(fabric_);
  }

 private:
  Status read_text(const LldpText& from) {
    std::string_view rest = from.text;
    std::string machine = from.machine;
    bool any = false;
    while (true) {
      const std::size_t begin = rest.find_first_not_of(" \t\r\n");
      if (begin == std::string_view::npos) break;
      rest.remove_prefix(begin);
      const std::string_view before = std::string_view(from.text).substr(0, from.text.size() - rest.size());
      const auto document = parse(from.file, next_document(rest), std::ranges::count(before, '\n') + 1);
      if (!document) return std::unexpected(document.error());
      if (const json& local = member(*document, "local-chassis"); !local.is_null()) {
        const Machine own = machine_of(member(local, "chassis"));
        if (!own.name.empty()) machine = own.name;
        if (auto ok = note(own); !ok) return std::unexpected(ok.error());
        any = true;
      }
      if (!document->contains("lldp")) continue;
      any = true;
      if (auto ok = read_neighbours(machine, (*document)["lldp"]); !ok) {
        return fail(Errc::bad_config, from.file + ": " + ok.error().message);
      }
    }
    if (any) return {};
    return fail(Errc::bad_config, from.file +
                                      ":1: neither \"lldp\" nor \"local-chassis\" is here; expected is the output "
                                      "of lldpcli -f json show neighbors details");
  }

  static Result<json> parse(const std::string& file, std::string_view text, std::ptrdiff_t line) {
    try {
      const auto bounded = [](int depth, json::parse_event_t, const json&) { return depth <= kDepthMax; };
      json document = json::parse(text, bounded);
      if (document.is_object()) return document;
      return fail(Errc::bad_config, file + ":" + std::to_string(line) + ": this is no object of JSON");
    } catch (const json::parse_error& error) {
      const auto before = text.substr(0, error.byte == 0 ? 0 : error.byte - 1);
      return fail(Errc::bad_config, file + ":" + std::to_string(line + std::ranges::count(before, '\n')) +
                                        ": this is no JSON: expected is the output of lldpcli -f json");
    }
  }

  Status read_neighbours(const std::string& machine, const json& lldp) {
    Status ok;
    each(member(lldp, "interface"), [&](const json& one) {
      if (!ok || !one.is_object()) return;
      if (one.contains("via")) {  // form json0
        ok = read_neighbour(machine, value_of(member(one, "name")), one);
        return;
      }
      for (const auto& [port, neighbour] : one.items()) {
        if (ok) ok = read_neighbour(machine, port, neighbour);
      }
    });
    return ok;
  }

  Status read_neighbour(const std::string& machine, const std::string& port, const json& neighbour) {
    if (const json& via = member(neighbour, "via"); via.is_string() && via != "LLDP") {
      ++others_;
      return {};
    }
    if (machine.empty())
      return fail(Errc::bad_config, "nothing says whose neighbours these are; name the file after this machine");
    const Machine far = machine_of(member(neighbour, "chassis"));
    if (far.name.empty()) return fail(Errc::bad_config, "a neighbour has neither a name nor an identity");
    const auto a = table_.add(machine, {.name = machine, .distinct = {}, .is_switch = false, .level = 0});
    const auto b = note(far);
    if (!a || !b) return std::unexpected(a ? b.error() : a.error());
    if (++cables_ > kFoundLinksMax) return fail(Errc::bad_config, "too many neighbours");
    const json& far_port = member(neighbour, "port");
    told_[{*a, *b}].push_back({.rate = ethernet_rate(value_of(member(member(far_port, "auto-negotiation"), "current"))),
                               .near_port = port,
                               .far_port = value_of(member(far_port, "descr"))});
    return {};
  }

  Result<std::uint32_t> note(const Machine& machine) {
    const auto index = table_.add(machine.name, {.name = machine.name, .distinct = {}, .is_switch = false, .level = 0});
    if (index) described_.insert(*index);
    if (index && machine.forwards && !hosts_.contains(machine.name)) fabric_.nodes[*index].is_switch = true;
    return index;
  }

  /// If both ends describe the cables between them, the end that describes more cables counts, with the higher of the
  /// two rates.
  Status join() {
    find_silent_switches();
    for (auto& [ends, cables] : told_) {
      const auto other = told_.find({ends.second, ends.first});
      if (other != told_.end()) {
        std::vector<Cable>& others = other->second;
        const bool same = cables.size() == others.size();
        if (cables.size() < others.size() || (same && ends.first > ends.second)) continue;
        std::ranges::sort(cables, std::greater{}, &Cable::rate);
        std::ranges::sort(others, std::greater{}, &Cable::rate);
        for (std::size_t i = 0; i < others.size(); ++i) cables[i].rate = std::max(cables[i].rate, others[i].rate);
      }
      const bool near_host = !fabric_.nodes[ends.first].is_switch;
      for (const Cable& cable : cables) {
        const std::string& port = near_host ? cable.near_port : cable.far_port;
        if (auto ok = table_.link(ends.first, ends.second, cable.rate, rails_ ? port : std::string()); !ok) return ok;
      }
    }
    return {};
  }

  /// A machine that no other machine describes, and that has a host as its neighbour, is a switch: hosts are not cabled
  /// to hosts.
  void find_silent_switches() {
    for (const auto& [ends, cables] : told_) {
      FoundNode& teller = fabric_.nodes[ends.first];
      const bool host = described_.contains(ends.second) && !fabric_.nodes[ends.second].is_switch;
      if (host && !described_.contains(ends.first) && !hosts_.contains(teller.name)) teller.is_switch = true;
    }
  }

  /// The cables between two machines, as one of them describes them.
  struct Cable {
    std::uint64_t rate = 0;
    std::string near_port, far_port;
  };

  FoundFabric fabric_;
  NodeTable table_;
  std::unordered_set<std::uint32_t> described_;  // nodes that have described themselves
  const std::unordered_set<std::string> hosts_;
  const bool rails_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::vector<Cable>> told_;  // key: describer, then neighbour
  std::size_t cables_ = 0;
  std::size_t others_ = 0;
};

}  // namespace

Result<FoundFabric> read_lldp(const std::vector<LldpText>& texts, const LldpOptions& options) {
  return LldpReader(options).read(texts);
}

bool looks_like_lldp(std::string_view text) {
  constexpr std::size_t kBytesSeen = 4096;
  text = text.substr(0, kBytesSeen);
  return text.contains("\"lldp\"") || text.contains("\"local-chassis\"");
}

std::uint64_t ethernet_rate(std::string_view kind) {
  const std::size_t digits = std::min(kind.size(), kind.find_first_not_of("0123456789."));
  const auto number = service::parse_number<double>(kind.substr(0, digits));
  if (!number || *number <= 0 || *number > 1e6) return 0;
  std::string unit;
  for (const char c : kind.substr(digits, 8)) unit += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  constexpr double kMega = 1e6, kGiga = 1e9;
  if (unit.starts_with("base")) return static_cast<std::uint64_t>(*number * kMega);
  if (unit.starts_with("gbase") || unit.starts_with("gigbase")) return static_cast<std::uint64_t>(*number * kGiga);
  return 0;
}

}  // namespace tributary::manager
