// Keys, behind the prefix:
//   aggregator/NAME, group/NUMBER, value/KEY   "=" and the record's text; or, for a text that is too long for one
//                                              request, "*", a stamp and the number of its parts
//   part/KIND/LENGTH:NAME/STAMP/NUMBER         the parts of long texts
//   ended/NUMBER                               the time until which a group that was given back is remembered
//   leader, fence_base                         etcd_election.h
//   form                                       the newest form of records that a leader here has known
#include "tree-manager/store/etcd/etcd_store.h"

#include <algorithm>
#include <atomic>
#include <charconv>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <set>

#include "tree-manager/store/etcd/etcd_election.h"
#include "tree-manager/store/records.h"

namespace tributary::manager {
namespace {

using nlohmann::json;

// etcd takes requests of up to 1.5 MiB by default.
constexpr std::size_t kPartBytes = 1U << 20;
constexpr std::size_t kTextInOneKeyMax = 256U << 10;
constexpr int kPageKeys = 256;  // with kTextInOneKeyMax at most 64 MiB, and a third more in base64
constexpr int kPageParts = 32;
constexpr std::size_t kRemovalsAtOnce = 64;  // etcd takes 128 operations in a transaction

/// Form of the records that this version writes. A new member of a record that older versions can do without is no new
/// form: they read the record without it. Raise the number if they would read a record wrong.
constexpr std::uint64_t kForm = 1;
constexpr const char* kFormKey = "form";

std::string number_text(std::uint64_t number) {
  char text[24];
  std::snprintf(text, sizeof text, "%020llu", static_cast<unsigned long long>(number));
  return text;
}

std::uint64_t number_of(std::string_view text) {
  std::uint64_t number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

std::string parts_of(std::string_view kind, std::string_view name) {
  return "part/" + std::string(kind) + "/" + std::to_string(name.size()) + ":" + std::string(name) + "/";
}

class Keeper final : public EtcdStore {
 public:
  Keeper(std::unique_ptr<EtcdClient> client, EtcdStoreSettings settings, Term term)
      : client_(std::move(client)), settings_(settings), term_(std::move(term)), fence_(term_.fence()) {}
  /// Opens the store without a leadership.
  Keeper(std::unique_ptr<EtcdClient> client, EtcdStoreSettings settings)
      : client_(std::move(client)), settings_(settings), fence_(0), lost_(true) {}

  Status begin() {
    const auto form = read_form();
    if (!form) return std::unexpected(form.error());
    if (term_.fence_base == 0) {
      if (auto ok = raise_base(std::max<std::uint64_t>(1, settings_.fence_base_min)); !ok) return ok;
    }
    return *form == kForm ? Status{} : write(json::array({put_of(kFormKey, std::to_string(kForm))}));
  }

  bool lost() const noexcept override { return lost_.load(std::memory_order_relaxed); }
  std::uint64_t fence() const override { return fence_.load(std::memory_order_relaxed); }
  Result<std::string> value(const std::string& key) override {
    const json body = {{"key", client_->key("value/" + key)}};
    const auto answer = client_->call("/v3/kv/range", body, settings_.read_limit);
    if (!answer) return std::unexpected(answer.error());
    if (!answer->contains("kvs") || answer->at("kvs").empty()) return std::string{};
    auto text = etcd_text(answer->at("kvs")[0], "value");
    if (text && text->starts_with('*')) return whole("value", key, *text);
    if (text && text->starts_with('=')) text->erase(0, 1);
    return text;
  }
  Status raise_fence(std::uint64_t seen) override {
    const std::uint64_t next = std::max(seen, fence()) + 1;
    return raise_base(next - term_.revision);
  }

  /// Reads all pages as of one revision, so that all records belong together even if the leader writes meanwhile.
  Result<Snapshot> load() override {
    const json body = {
        {"key", client_->key("value/")}, {"count_only", true}, {"serializable", settings_.reads_one_member}};
    const auto answer = client_->call("/v3/kv/range", body, settings_.read_limit);
    if (!answer) return std::unexpected(answer.error());
    as_of_ = etcd_number(answer->value("header", json::object()), "revision");
    const std::uint64_t revision = as_of_;
    if (const auto form = read_form(); !form) return std::unexpected(form.error());
    auto snapshot = load_all();
    as_of_ = 0;
    if (!snapshot) return snapshot;
    if (!lost()) {
      if (auto ok = remove_strays(); !ok) return std::unexpected(ok.error());
    } else if (term_.lease == 0) {
      if (auto ok = learn_fence(revision); !ok) return std::unexpected(ok.error());
    }
    return snapshot;
  }

  Status put(const AggregatorRecord& record) override { return put_text("aggregator", record.name, to_text(record)); }
  Status put(const GroupRecord& record) override { return put_text("group", number_text(record.id), to_text(record)); }
  Status put_value(const std::string& key, const std::string& value) override { return put_text("value", key, value); }
  Status remove_aggregator(const std::string& name) override { return write(removal_of("aggregator", name)); }
  Status remove_group(std::uint64_t id) override { return write(removal_of("group", number_text(id))); }
  Status end_group(std::uint64_t id, std::int64_t until) override {
    json operations = removal_of("group", number_text(id));
    operations.push_back(put_of("ended/" + number_text(id), std::to_string(until)));
    return write(operations);
  }
  Result<bool> has_ended(std::uint64_t id) override {
    const json body = {{"key", client_->key("ended/" + number_text(id))}, {"count_only", true}};
    const auto answer = client_->call("/v3/kv/range", body, settings_.read_limit);
    if (!answer) return std::unexpected(answer.error());
    return etcd_number(*answer, "count") != 0;
  }
  Result<std::vector<EndedGroup>> ended_groups() override {
    std::vector<EndedGroup> all;
    const auto ok = each("ended/", kPageKeys, [&](std::string_view name, const std::string& value) -> Status {
      all.push_back({number_of(name), static_cast<std::int64_t>(number_of(value))});
      return {};
    });
    if (!ok) return std::unexpected(ok.error());
    return all;
  }
  Status forget_ended(std::int64_t now) override {
    const auto all = ended_groups();
    if (!all) return std::unexpected(all.error());
    json operations = json::array();
    for (const EndedGroup& it : *all) {
      if (it.until >= now) continue;
      operations.push_back({{"request_delete_range", {{"key", client_->key("ended/" + number_text(it.id))}}}});
      if (operations.size() < kRemovalsAtOnce) continue;
      if (auto ok = write(operations); !ok) return ok;
      operations.clear();
    }
    return operations.empty() ? Status{} : write(operations);
  }

 private:
  /// Returns 0 if no leader has written a form. Refuses a store on which a manager with a newer form has led.
  Result<std::uint64_t> read_form() {
    const json body = {{"key", client_->key(kFormKey)}, {"serializable", settings_.reads_one_member}};
    const auto answer = client_->call("/v3/kv/range", body, settings_.read_limit);
    if (!answer) return std::unexpected(answer.error());
    if (!answer->contains("kvs") || answer->at("kvs").empty()) return 0;
    const auto text = etcd_text(answer->at("kvs")[0], "value");
    if (!text) return std::unexpected(text.error());
    const std::uint64_t form = number_of(*text);
    if (form <= kForm) return form;
    return fail(Errc::unsupported, "etcd holds records of form " + *text + ", and this manager reads form " +
                                       std::to_string(kForm) +
                                       " at most: a newer manager has led here; upgrade this manager");
  }

  Result<Snapshot> load_all() {
    Snapshot snapshot;
    const auto aggregators = read("aggregator", [&](std::string_view, const std::string& text) -> Status {
      auto record = aggregator_from_text(text);
      if (!record) return std::unexpected(record.error());
      snapshot.aggregators.push_back(std::move(*record));
      return {};
    });
    if (!aggregators) return std::unexpected(aggregators.error());
    const auto groups = read("group", [&](std::string_view, const std::string& text) -> Status {
      auto record = group_from_text(text);
      if (!record) return std::unexpected(record.error());
      snapshot.groups.push_back(std::move(*record));
      return {};
    });
    if (!groups) return std::unexpected(groups.error());
    const auto values = read("value", [&](std::string_view name, const std::string& text) -> Status {
      snapshot.values[std::string(name)] = text;
      return {};
    });
    if (!values) return std::unexpected(values.error());
    return snapshot;
  }

  [[nodiscard]] json put_of(const std::string& name, std::string_view value) const {
    return {{"request_put", {{"key", client_->key(name)}, {"value", to_base64_text(value)}}}};
  }
  [[nodiscard]] json removal_of_all(const std::string& prefix) const {
    return {{"request_delete_range", {{"key", client_->key(prefix)}, {"range_end", client_->end_of(prefix)}}}};
  }
  [[nodiscard]] json removal_of(std::string_view kind, const std::string& name) const {
    const std::string key = std::string(kind) + "/" + name;
    return json::array(
        {{{"request_delete_range", {{"key", client_->key(key)}}}}, removal_of_all(parts_of(kind, name))});
  }

  /// A leader's key has a revision that the store had before, so this value is above every fence until now.
  Status learn_fence(std::uint64_t revision) {
    const auto answer = client_->call("/v3/kv/range", {{"key", client_->key(kFenceBaseKey)}}, settings_.read_limit);
    if (!answer) return std::unexpected(answer.error());
    if (!answer->contains("kvs") || answer->at("kvs").empty()) return {};
    const auto base = etcd_text(answer->at("kvs")[0], "value");
    if (!base) return std::unexpected(base.error());
    fence_.store(number_of(*base) + revision, std::memory_order_relaxed);
    return {};
  }

  Status raise_base(std::uint64_t base) {
    const json put = put_of(std::string(kFenceBaseKey), std::to_string(base));
    if (auto ok = write(json::array({put})); !ok) return ok;
    term_.fence_base = base;
    fence_.store(term_.fence(), std::memory_order_relaxed);
    return {};
  }

  Status put_text(std::string_view kind, const std::string& name, std::string_view text) {
    const std::string key = std::string(kind) + "/" + name;
    const std::string parts = parts_of(kind, name);
    if (text.size() <= kTextInOneKeyMax) {
      return write(json::array({put_of(key, "=" + std::string(text)), removal_of_all(parts)}));
    }
    // The parts are written first, under new names: until the key names them, the earlier text is complete.
    const std::string stamp = number_text(term_.revision) + "-" + number_text(term_.version);
    const std::string mine = parts + stamp + "/";
    std::uint64_t count = 0;
    for (std::size_t at = 0; at < text.size(); at += kPartBytes, ++count) {
      if (auto ok = write(json::array({put_of(mine + number_text(count), text.substr(at, kPartBytes))})); !ok)
        return ok;
    }
    const json before = {{"request_delete_range", {{"key", client_->key(parts)}, {"range_end", client_->key(mine)}}}};
    const json after = {
        {"request_delete_range", {{"key", client_->end_of(mine)}, {"range_end", client_->end_of(parts)}}}};
    return write(json::array({put_of(key, "*" + stamp + " " + std::to_string(count)), before, after}));
  }

  /// Calls the visitor for all keys that begin with `prefix`, in their order, with the rest of each name and the value.
  template <class Visit>
  Status each(const std::string& prefix, int page, const Visit& visit, bool keys_only = false) {
    std::string from = client_->key(prefix);
    const std::string end = client_->end_of(prefix);
    while (true) {
      const json body = {{"key", from},
                         {"range_end", end},
                         {"limit", std::to_string(page)},
                         {"keys_only", keys_only},
                         {"revision", std::to_string(as_of_)},
                         {"serializable", settings_.reads_one_member}};
      const auto answer = client_->call("/v3/kv/range", body, settings_.read_limit);
      if (!answer) return std::unexpected(answer.error());
      if (!answer->contains("kvs")) return {};
      std::string last;
      for (const json& pair : answer->at("kvs")) {
        const auto key = etcd_text(pair, "key");
        const auto value = etcd_text(pair, "value");
        if (!key || !value) return std::unexpected((key ? value : key).error());
        const std::size_t prefix_bytes = client_->prefix().size() + prefix.size();
        if (key->size() < prefix_bytes) return fail(Errc::corrupt, "etcd gave another key than was asked for");
        if (auto ok = visit(std::string_view(*key).substr(prefix_bytes), *value); !ok) return ok;
        last = *key;
      }
      if (!answer->value("more", false) || last.empty()) return {};
      from = to_base64_text(last + '\0');
    }
  }

  template <class Visit>
  Status read(const std::string& kind, const Visit& visit) {
    return each(kind + "/", kPageKeys, [&](std::string_view name, const std::string& value) -> Status {
      if (value.starts_with('=')) return visit(name, value.substr(1));
      const auto text = whole(kind, std::string(name), value);
      return text ? visit(name, *text) : std::unexpected(text.error());
    });
  }

  Result<std::string> whole(const std::string& kind, const std::string& name, const std::string& head) {
    const std::size_t space = std::min(head.find(' '), head.size());
    std::string text;
    std::uint64_t count = 0;
    const std::string parts = parts_of(kind, name) + head.substr(1, space - 1) + "/";
    named_.insert(parts);
    const auto ok = each(parts, kPageParts, [&](std::string_view, const std::string& part) -> Status {
      text += part;
      ++count;
      return {};
    });
    if (!ok) return std::unexpected(ok.error());
    const bool good = head.starts_with('*') && space != head.size() && count == number_of(head.substr(space + 1));
    if (good) return text;
    return fail(Errc::corrupt, "etcd holds " + client_->prefix() + kind + "/" + name +
                                   " with other parts than it names; restore etcd from a backup");
  }

  /// Removes parts that no key names: their manager ended before it had written all parts.
  Status remove_strays() {
    std::set<std::string> strays;
    const auto ok = each(
        "part/", kPageParts,
        [&](std::string_view name, const std::string&) -> Status {
          const std::string parts = "part/" + std::string(name.substr(0, name.rfind('/') + 1));
          if (!named_.contains(parts)) strays.insert(parts);
          return {};
        },
        true);
    if (!ok) return ok;
    for (const std::string& parts : strays) {
      if (auto removed = write(json::array({removal_of_all(parts)})); !removed) return removed;
    }
    return {};
  }

  /// The transaction of one write. It also writes the leader's key, which raises the key's version.
  [[nodiscard]] json transaction_of(const json& operations) const {
    const std::string key = client_->key(kLeaderKey);
    json success = json::array(
        {{{"request_put",
           {{"key", key}, {"value", to_base64_text(term_.candidate)}, {"lease", std::to_string(term_.lease)}}}}});
    for (const json& operation : operations) success.push_back(operation);
    const json created = {
        {"key", key}, {"target", "CREATE"}, {"result", "EQUAL"}, {"create_revision", std::to_string(term_.revision)}};
    const json version = {
        {"key", key}, {"target", "VERSION"}, {"result", "EQUAL"}, {"version", std::to_string(term_.version)}};
    return {{"compare", {created, version}},
            {"success", std::move(success)},
            {"failure", json::array({{{"request_range", {{"key", key}}}}})}};
  }

  /// Returns the version of the leader's key, if the key belongs to this leadership; else 0. Reads the answer to a
  /// transaction that did not succeed.
  [[nodiscard]] std::uint64_t version_in(const json& answer) const {
    if (!answer.contains("responses") || answer["responses"].empty()) return 0;
    const json range = answer["responses"][0].value("response_range", json::object());
    if (!range.contains("kvs") || range["kvs"].empty()) return 0;
    const json& leader = range["kvs"][0];
    return etcd_number(leader, "create_revision") == term_.revision ? etcd_number(leader, "version") : 0;
  }

  Status write(const json& operations) {
    const auto over = [] { return fail(Errc::retry, "this manager no longer leads: another may lead now, ask again"); };
    if (lost()) return over();
    const auto answer = client_->call("/v3/kv/txn", transaction_of(operations), settings_.write_limit);
    if (!answer) {
      const Errc code = answer.error().code;
      if (code == Errc::exhausted || code == Errc::denied || code == Errc::io) return std::unexpected(answer.error());
      lost_ = true;
      return fail(Errc::retry, "this manager no longer leads: " + answer.error().message);
    }
    // An earlier attempt, whose answer was lost, has made the same change.
    if (!answer->value("succeeded", false) && version_in(*answer) != term_.version + 1) {
      lost_ = true;
      return over();
    }
    ++term_.version;
    return {};
  }

  std::unique_ptr<EtcdClient> client_;
  const EtcdStoreSettings settings_;
  Term term_;
  std::atomic<std::uint64_t> fence_;
  std::atomic<bool> lost_{false};
  std::set<std::string> named_;  // places of the parts of long texts that load() has found
  std::uint64_t as_of_ = 0;      // the revision that load() reads; 0: the newest
};

}  // namespace

Result<std::unique_ptr<EtcdStore>> open_etcd_to_read(const EtcdSettings& etcd, const EtcdStoreSettings& settings) {
  auto client = EtcdClient::create(etcd);
  if (!client) return std::unexpected(client.error());
  return std::make_unique<Keeper>(std::move(*client), settings);
}

Result<std::unique_ptr<EtcdStore>> open_etcd(const EtcdSettings& etcd, const EtcdStoreSettings& settings,
                                             const Term& term) {
  auto client = EtcdClient::create(etcd);
  if (!client) return std::unexpected(client.error());
  auto store = std::make_unique<Keeper>(std::move(*client), settings, term);
  if (auto ok = store->begin(); !ok) return std::unexpected(ok.error());
  return store;
}

}  // namespace tributary::manager
