#include "tree-manager/topology/topology_json.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <unordered_map>

namespace tributary::manager {
namespace {

using nlohmann::json;

class JsonReader {
 public:
  explicit JsonReader(const json& document) : document_(document) {}

  Result<Topology> read() {
    const auto fabric = document_.at("fabric").get<std::string>();
    const auto* kind = std::ranges::find(kFabricKinds, fabric, [](FabricKind it) { return to_string(it); });
    if (kind == std::end(kFabricKinds)) return unknown("the fabric '" + fabric + "'");
    out_.fabric = *kind;
    out_.assumed_rate_bits_per_second = document_.value("assumed_rate_bits_per_second", kAssumedRateDefault);
    out_.hosts = document_.at("hosts").get<std::vector<std::string>>();
    out_.rails = document_.value("rails", std::vector<std::string>());
    for (std::uint32_t i = 0; i < out_.hosts.size(); ++i) ends_[out_.hosts[i]] = {Link::End::host, i};
    read_switches();
    for (const json& link : document_.at("links")) {
      if (auto ok = read_link(link); !ok) return std::unexpected(ok.error());
    }
    for (const json& site : document_.at("aggregators")) {
      AggregatorSite& made =
          out_.aggregators.emplace_back(site.at("name").get<std::string>(), site.at("host").get<std::string>());
      if (site.contains("line_rate_bits_per_second")) {
        made.line_rate_bits_per_second = site.at("line_rate_bits_per_second").get<std::uint64_t>();
      }
    }
    return std::move(out_);
  }

 private:
  struct End {
    Link::End kind;
    std::uint32_t index;
  };

  static std::unexpected<Error> unknown(const std::string& what) {
    return fail(Errc::corrupt, what + " in the manager's topology is not known here; install the same version of both");
  }

  static std::uint32_t number_of(const json& object, const char* key, std::vector<std::string>& names) {
    if (!object.contains(key)) return kUnnamed;
    auto name = object.at(key).get<std::string>();
    const auto known = std::ranges::find(names, name);
    const auto index = static_cast<std::uint32_t>(known - names.begin());
    if (known == names.end()) names.push_back(std::move(name));
    return index;
  }

  void read_switches() {
    for (const json& one : document_.at("switches")) {
      const auto index = static_cast<std::uint32_t>(out_.switches.size());
      SwitchNode& made =
          out_.switches.emplace_back(one.at("name").get<std::string>(), one.at("level").get<std::uint32_t>());
      made.rail = number_of(one, "rail", out_.rails);
      made.group = number_of(one, "group", out_.groups);
      ends_[made.name] = {Link::End::fabric_switch, index};
    }
  }

  Status read_link(const json& link) {
    const auto from = ends_.find(link.at("from").get<std::string>());
    const auto to = ends_.find(link.at("to").get<std::string>());
    if (from == ends_.end() || to == ends_.end() || to->second.kind != Link::End::fabric_switch) {
      return unknown("an end of link " + std::to_string(out_.links.size()));
    }
    out_.links.push_back({from->second.kind, from->second.index, to->second.index,
                          link.at("rate_bits_per_second").get<std::uint64_t>(),
                          number_of(link, "interface", out_.interfaces)});
    return {};
  }

  const json& document_;
  Topology out_;
  std::unordered_map<std::string, End> ends_;
};

}  // namespace

Result<Topology> topology_from_json(const json& document) {
  try {
    return JsonReader(document).read();
  } catch (const json::exception& error) {
    return fail(Errc::corrupt, "the manager's topology is not what this version of tributary expects (" +
                                   std::string(error.what()) + "); install the same version of both");
  }
}

}  // namespace tributary::manager
