#include "tree-manager/store/archive.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "tree-manager/store/records.h"
#include "tributary/protocol/credential.h"
#include "tributary/protocol/json_reader.h"

namespace tributary::manager {
namespace {

using nlohmann::json;

constexpr std::uint64_t kArchiveVersion = 1;
constexpr std::string_view kDigestKey = "tributary archive 1";  // finds damage; anybody can compute it

std::string digest_of(std::string_view text) {
  return to_hex(hmac_sha256(std::as_bytes(std::span(kDigestKey)), std::as_bytes(std::span(text))));
}

std::string line_of(const json& object) {
  return object.dump(-1, ' ', false, json::error_handler_t::replace) + "\n";
}

std::unexpected<Error> no_archive(const std::string& why) {
  return fail(Errc::corrupt, "this is no whole archive of a manager: " + why);
}

/// Takes over one record. A record of an unknown kind comes from a newer manager.
Status read_record(const json& line, Archive& into) {
  if (const auto it = line.find("aggregator"); it != line.end() && it->is_string()) {
    auto record = aggregator_from_text(it->get<std::string>());
    if (!record) return std::unexpected(record.error());
    into.records.aggregators.push_back(std::move(*record));
    return {};
  }
  if (const auto it = line.find("group"); it != line.end() && it->is_string()) {
    auto record = group_from_text(it->get<std::string>());
    if (!record) return std::unexpected(record.error());
    into.records.groups.push_back(std::move(*record));
    return {};
  }
  if (line.contains("value") && line["value"].is_string() && line.contains("text") && line["text"].is_string()) {
    into.records.values[line["value"]] = line["text"];
    return {};
  }
  if (line.contains("ended") && line["ended"].is_number_unsigned() && line.contains("until") &&
      line["until"].is_number_integer()) {
    into.ended.push_back({line["ended"], line["until"]});
    return {};
  }
  return no_archive("a line holds no record that this version knows");
}

Status read_head(const json& head, Archive& into) {
  const auto number = [&head](const char* name) -> std::uint64_t {
    return head.is_object() && head.contains(name) && head[name].is_number_unsigned() ? head[name].get<std::uint64_t>()
                                                                                      : 0;
  };
  const std::uint64_t version = number("tributary_archive");
  if (version == 0) return no_archive("its first line is no head of an archive");
  if (version > kArchiveVersion) return no_archive("a newer manager made it");
  if (number("fence") > kFenceMax) return no_archive("its fence is out of bounds");
  into.fence = number("fence");
  into.made_at = static_cast<std::int64_t>(number("made_at"));
  return {};
}

/// Removes all records of the store.
Status clear(Store& store, const Snapshot& has, const std::function<Status()>& between) {
  for (const AggregatorRecord& record : has.aggregators) {
    if (auto ok = store.remove_aggregator(record.name); !ok) return ok;
    if (auto ok = between(); !ok) return ok;
  }
  for (const GroupRecord& record : has.groups) {
    if (auto ok = store.remove_group(record.id); !ok) return ok;
    if (auto ok = between(); !ok) return ok;
  }
  for (const auto& [key, text] : has.values) {
    if (key == kRestoringKey) continue;
    if (auto ok = store.put_value(key, ""); !ok) return ok;
  }
  return store.forget_ended(INT64_MAX);
}

Status put_all(Store& store, const Archive& archive, const std::function<Status()>& between) {
  std::set<std::uint64_t> ended;
  for (const EndedGroup& it : archive.ended) {
    ended.insert(it.id);
    if (auto ok = store.end_group(it.id, it.until); !ok) return ok;
    if (auto ok = between(); !ok) return ok;
  }
  for (const AggregatorRecord& record : archive.records.aggregators) {
    if (auto ok = store.put(record); !ok) return ok;
    if (auto ok = between(); !ok) return ok;
  }
  for (const GroupRecord& record : archive.records.groups) {
    if (ended.contains(record.id)) continue;  // the group was given back while the archive was made
    if (auto ok = store.put(record); !ok) return ok;
    if (auto ok = between(); !ok) return ok;
  }
  for (const auto& [key, text] : archive.records.values) {
    if (key == kRestoringKey) continue;
    if (auto ok = store.put_value(key, text); !ok) return ok;
  }
  return {};
}

}  // namespace

std::string to_text(const Archive& archive) {
  std::string text = line_of({{"tributary_archive", kArchiveVersion},
                              {"fence", archive.fence},
                              {"made_at", static_cast<std::uint64_t>(std::max<std::int64_t>(0, archive.made_at))}});
  for (const AggregatorRecord& record : archive.records.aggregators) text += line_of({{"aggregator", to_text(record)}});
  for (const GroupRecord& record : archive.records.groups) text += line_of({{"group", to_text(record)}});
  for (const auto& [key, value] : archive.records.values) text += line_of({{"value", key}, {"text", value}});
  for (const EndedGroup& it : archive.ended) text += line_of({{"ended", it.id}, {"until", it.until}});
  return text + line_of({{"end", digest_of(text)}});
}

Result<Archive> archive_from_text(std::string_view text) {
  Archive archive;
  bool head = true;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = text.find('\n', at);
    if (end == std::string_view::npos) return no_archive("its last line is cut off");
    const json line = json::parse(text.substr(at, end - at), nullptr, false);
    if (!line.is_object()) return no_archive("a line is no object of JSON");
    if (line.contains("end")) {
      if (head || line["end"] != digest_of(text.substr(0, at)))
        return no_archive("its digest differs from its records");
      if (end + 1 != text.size()) return no_archive("lines follow its end");
      return archive;
    }
    if (auto ok = head ? read_head(line, archive) : read_record(line, archive); !ok) return std::unexpected(ok.error());
    head = false;
    at = end + 1;
  }
  return no_archive("its end is missing");
}

Result<Archive> read_archive(Store& store, std::int64_t now_s) {
  auto records = store.load();
  if (!records) return std::unexpected(records.error());
  if (const auto it = records->values.find(kRestoringKey); it != records->values.end() && !it->second.empty())
    return fail(Errc::mismatch, "the store is not whole: a restore into it has not ended");
  std::erase_if(records->values, [](const auto& it) { return it.second.empty(); });
  auto ended = store.ended_groups();
  if (!ended) return std::unexpected(ended.error());
  return Archive{.records = std::move(*records), .ended = std::move(*ended), .fence = store.fence(), .made_at = now_s};
}

Status restore(Store& store, const Archive& archive, bool replace, const std::function<Status()>& between) {
  const auto has = store.load();
  if (!has) return std::unexpected(has.error());
  const bool empty = has->aggregators.empty() && has->groups.empty() &&
                     std::ranges::all_of(has->values, [](const auto& it) { return it.second.empty(); });
  if (!empty && !replace) {
    return fail(Errc::mismatch, "the store is not empty: it has " + std::to_string(has->groups.size()) +
                                    " groups and " + std::to_string(has->aggregators.size()) +
                                    " aggregators; --replace removes them");
  }
  if (auto ok = store.put_value(kRestoringKey, "yes"); !ok) return ok;
  if (auto ok = clear(store, *has, between); !ok) return ok;
  if (auto ok = put_all(store, archive, between); !ok) return ok;
  if (archive.fence >= store.fence()) {
    if (auto ok = store.raise_fence(archive.fence); !ok) return ok;
  }
  return store.put_value(kRestoringKey, "");
}

}  // namespace tributary::manager
