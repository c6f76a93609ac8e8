#pragma once
// Stores in memory.
#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "tree-manager/store/store.h"

namespace tributary::manager {

/// A store of one manager, which can be full.
class MemoryStore final : public Store {
 public:
  bool full = false;
  int writes = 0;
  std::map<std::string, AggregatorRecord> aggregators;
  std::map<std::uint64_t, GroupRecord> groups;
  std::map<std::string, std::string> values;
  std::map<std::uint64_t, std::int64_t> ended;
  std::uint64_t leadership = 1;        // the fence
  std::function<void()> before_write;  // called before each write; takes time like a disk

  [[nodiscard]] std::uint64_t fence() const override { return leadership; }
  Status raise_fence(std::uint64_t seen) override {
    return write([&] { leadership = std::max(seen, leadership) + 1; });
  }
  Result<Snapshot> load() override {
    Snapshot snapshot;
    for (const auto& [name, record] : aggregators) snapshot.aggregators.push_back(record);
    for (const auto& [id, record] : groups) snapshot.groups.push_back(record);
    snapshot.values = values;
    return snapshot;
  }
  Status put(const AggregatorRecord& record) override {
    return write([&] { aggregators[record.name] = record; });
  }
  Status put(const GroupRecord& record) override {
    return write([&] { groups[record.id] = record; });
  }
  Status put_value(const std::string& key, const std::string& value) override {
    return write([&] { values[key] = value; });
  }
  Status remove_aggregator(const std::string& name) override {
    return write([&] { aggregators.erase(name); });
  }
  Status remove_group(std::uint64_t id) override {
    return write([&] { groups.erase(id); });
  }
  Status end_group(std::uint64_t id, std::int64_t until) override {
    return write([&] {
      groups.erase(id);
      ended[id] = until;
    });
  }
  Result<bool> has_ended(std::uint64_t id) override { return ended.contains(id); }
  Result<std::vector<EndedGroup>> ended_groups() override {
    std::vector<EndedGroup> all;
    for (const auto& [id, until] : ended) all.push_back({id, until});
    return all;
  }
  Status forget_ended(std::int64_t now) override {
    std::erase_if(ended, [&](const auto& it) { return it.second < now; });
    return {};
  }

 private:
  template <class Change>
  Status write(const Change& change) {
    if (before_write) before_write();
    if (full) return fail(Errc::exhausted, "the test's store has no room");
    ++writes;
    change();
    return {};
  }
};

/// One leadership over records that several managers share: after another leadership has begun, the store refuses every
/// write of this one.
class SharedStore final : public Store {
 public:
  explicit SharedStore(std::shared_ptr<MemoryStore> records)
      : records_(std::move(records)), fence_(++records_->leadership) {}

  [[nodiscard]] std::uint64_t fence() const override { return fence_; }
  Status raise_fence(std::uint64_t seen) override {
    auto ok = write([&] { return records_->raise_fence(seen); });
    if (ok) fence_ = records_->leadership;
    return ok;
  }
  Result<Snapshot> load() override { return records_->load(); }
  Status put(const AggregatorRecord& record) override {
    return write([&] { return records_->put(record); });
  }
  Status put(const GroupRecord& record) override {
    return write([&] { return records_->put(record); });
  }
  Status put_value(const std::string& key, const std::string& value) override {
    return write([&] { return records_->put_value(key, value); });
  }
  Status remove_aggregator(const std::string& name) override {
    return write([&] { return records_->remove_aggregator(name); });
  }
  Status remove_group(std::uint64_t id) override {
    return write([&] { return records_->remove_group(id); });
  }
  Status end_group(std::uint64_t id, std::int64_t until) override {
    return write([&] { return records_->end_group(id, until); });
  }
  Result<bool> has_ended(std::uint64_t id) override { return records_->has_ended(id); }
  Result<std::vector<EndedGroup>> ended_groups() override { return records_->ended_groups(); }
  Status forget_ended(std::int64_t now) override {
    return write([&] { return records_->forget_ended(now); });
  }

 private:
  template <class Write>
  Status write(const Write& write) {
    if (fence_ != records_->leadership) return fail(Errc::retry, "another manager leads now");
    return write();
  }
  std::shared_ptr<MemoryStore> records_;
  std::uint64_t fence_;
};

}  // namespace tributary::manager
