#pragma once
// The ops of pre-multiplied sums of one communicator: each has the factor by which this rank multiplies its values.
#include <array>
#include <cstddef>
#include <map>
#include <mutex>
#include <optional>

#include "tributary/protocol/error.h"
#include "tributary/protocol/numerics.h"
#include "tributary/protocol/types.h"

namespace tributary::client {

struct Factor {
  DType dtype = DType::uint8;
  std::array<std::byte, 8> value{};  // one element of dtype
};

/// Any thread may use it.
class Factors {
 public:
  /// An op of a factor is a multiple of this number, above the bits of every other tributary_op; like
  /// TRIBUTARY_SUM, it can have numerics added.
  static constexpr int kUnit = 1024;
  static constexpr std::size_t kFactorsMax = 65536;
  [[nodiscard]] static constexpr bool names(int op) noexcept { return op >= kUnit; }

  /// Returns the factor's op. Errc::exhausted: the communicator has kFactorsMax of them.
  [[nodiscard]] Result<int> add(const Factor& factor);
  /// Returns the factor of an op, which may have numerics added; nullopt: the op is not live.
  [[nodiscard]] std::optional<Factor> find(int op) const;
  /// Returns false if the op is not live.
  [[nodiscard]] bool remove(int op);

 private:
  static constexpr int kNumbersMax = (1 << 21) - 1;  // so that each op is a positive int

  mutable std::mutex mutex_;
  std::map<int, Factor> by_number_;  // guarded by mutex_
  int last_ = 0;                     // guarded by mutex_: numbers go round, so that a stale op is found out for long
};

/// The rules of one communicator for the ops of its calls.
struct Ops {
  Numerics numerics = Numerics::fast;  // of a call without numerics of its own
  Factors factors;
};

}  // namespace tributary::client
