#pragma once
// The promises of every kind of store. A program that tests a kind instantiates the suite with it.
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>

#include "tree-manager/store/store.h"

namespace tributary::manager {

/// The place where stores of one kind keep their records.
class StoreWorld {
 public:
  virtual ~StoreWorld() = default;
  /// Opens a store on the same records, as the manager that leads from now on.
  [[nodiscard]] virtual std::unique_ptr<Store> open() = 0;
};

struct StoreKind {
  std::string name;
  std::function<std::unique_ptr<StoreWorld>()> make;
};

class StoreConformance : public ::testing::TestWithParam<StoreKind> {
 public:
  static std::string name_of(const ::testing::TestParamInfo<StoreKind>& kind) { return kind.param.name; }

 protected:
  StoreConformance() : world_(GetParam().make()) {}
  /// Opens the store again: the previous store object is gone, and its manager, too.
  Store& reopen() {
    store_.reset();
    store_ = world_->open();
    return *store_;
  }

  std::unique_ptr<StoreWorld> world_;
  std::unique_ptr<Store> store_;
};

}  // namespace tributary::manager
