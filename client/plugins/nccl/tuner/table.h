#pragma once
// The sizes at which NCCL shall prefer CollNet, from a file with an administrator's measurements.
#include <expected>
#include <istream>
#include <optional>
#include <string>
#include <vector>

#include "client/plugins/nccl/abi/tuner.h"

namespace tributary::nccl {

struct TunerRow {
  abi::Function function = abi::Function::all_reduce;
  std::size_t bytes_min = 0;  // both limits are included
  std::size_t bytes_max = SIZE_MAX;
  std::size_t nodes_min = 2;
  std::size_t nodes_max = SIZE_MAX;
  bool collnet = true;  // false: NCCL decides, as without a tuner
  friend bool operator==(const TunerRow&, const TunerRow&) = default;
};

class TunerTable {
 public:
  explicit TunerTable(std::vector<TunerRow> rows) : rows_(std::move(rows)) {}
  /// Returns the table of TRIBUTARY_NCCL_TUNER_FILE; nullopt if it is not set, or if a warning says why it was refused.
  static const std::optional<TunerTable>& process();
  /// Reads one row from each line: FUNCTION BYTES_MIN BYTES_MAX NODES_MIN NODES_MAX collnet|default. "-" means no
  /// limit, sizes may end in K, M or G, and comments begin with #. The error names the line.
  static std::expected<TunerTable, std::string> parse(std::istream& text);

  /// Returns true if the first row that matches says "collnet".
  [[nodiscard]] bool prefers_collnet(abi::Function function, std::size_t bytes, std::size_t nodes) const noexcept;
  [[nodiscard]] const std::vector<TunerRow>& rows() const noexcept { return rows_; }

 private:
  std::vector<TunerRow> rows_;
};

/// Makes CollNet the cheapest algorithm, if NCCL offers it. `costs` is one array of algorithms x protocols.
void prefer_collnet(float* costs, int algorithms, int protocols) noexcept;
/// Makes CollNet more expensive than every other algorithm that NCCL offers; does nothing if it offers no other.
void avoid_collnet(float* costs, int algorithms, int protocols) noexcept;

}  // namespace tributary::nccl
