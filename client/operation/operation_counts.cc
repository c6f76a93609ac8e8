#include "client/operation/operation_counts.h"

namespace tributary::client {

OperationNumbers& OperationNumbers::operator+=(const OperationNumbers& other) noexcept {
  for (std::size_t collective = 0; collective < operations.size(); ++collective) {
    for (std::size_t size = 0; size < kSizes; ++size)
      operations[collective][size] += other.operations[collective][size];
  }
  for (std::size_t path = 0; path < bytes.size(); ++path) bytes[path] += other.bytes[path];
  pauses += other.pauses;
  failures += other.failures;
  values += other.values;
  reasons += other.reasons;
  return *this;
}

OperationNumbers::Histogram OperationCounts::Histogram::read() const noexcept {
  OperationNumbers::Histogram numbers;
  for (std::size_t i = 0; i < counts.size(); ++i) numbers.counts[i] = counts[i].load(std::memory_order_relaxed);
  numbers.sum_ns = sum_ns.load(std::memory_order_relaxed);
  return numbers;
}

void OperationCounts::Values::add(const ValueNumbers::Buffer& buffer) noexcept {
  elements.fetch_add(buffer.elements, std::memory_order_relaxed);
  nans.fetch_add(buffer.found.nans, std::memory_order_relaxed);
  infinities.fetch_add(buffer.found.infinities, std::memory_order_relaxed);
  subnormals.fetch_add(buffer.found.subnormals, std::memory_order_relaxed);
}

ValueNumbers::Buffer OperationCounts::Values::read() const noexcept {
  return {.elements = elements.load(std::memory_order_relaxed),
          .found = {.infinities = infinities.load(std::memory_order_relaxed),
                    .nans = nans.load(std::memory_order_relaxed),
                    .subnormals = subnormals.load(std::memory_order_relaxed)}};
}

void OperationCounts::saw(const ValueNumbers& values) noexcept {
  input_.add(values.input);
  result_.add(values.result);
}

OperationNumbers OperationCounts::read() const noexcept {
  OperationNumbers numbers;
  for (std::size_t collective = 0; collective < operations_.size(); ++collective) {
    for (std::size_t size = 0; size < OperationNumbers::kSizes; ++size)
      numbers.operations[collective][size] = operations_[collective][size].read();
  }
  for (std::size_t path = 0; path < bytes_.size(); ++path)
    numbers.bytes[path] = bytes_[path].load(std::memory_order_relaxed);
  numbers.pauses = pauses_.read();
  numbers.failures = failures_.load(std::memory_order_relaxed);
  numbers.values = {.input = input_.read(), .result = result_.read()};
  numbers.reasons = reasons_.read();
  return numbers;
}

}  // namespace tributary::client
