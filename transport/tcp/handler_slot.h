#pragma once
// Memory for the one pending wait that a channel has in each direction, so that waiting allocates nothing.
#include <array>
#include <cstddef>
#include <new>

namespace tributary::transport {

class HandlerSlot {
 public:
  void* allocate(std::size_t bytes) {
    if (used_ || bytes > memory_.size()) return ::operator new(bytes);
    used_ = true;
    return memory_.data();
  }
  void deallocate(void* at) noexcept {
    if (at == memory_.data()) {
      used_ = false;
    } else {
      ::operator delete(at);
    }
  }

 private:
  alignas(std::max_align_t) std::array<std::byte, 256> memory_{};
  bool used_ = false;
};

template <class T>
class SlotAllocator {
 public:
  using value_type = T;
  explicit SlotAllocator(HandlerSlot& slot) noexcept : slot_(&slot) {}
  template <class U>
  SlotAllocator(const SlotAllocator<U>& other) noexcept : slot_(other.slot()) {}  // NOLINT: allocators convert

  T* allocate(std::size_t count) { return static_cast<T*>(slot_->allocate(count * sizeof(T))); }
  void deallocate(T* at, std::size_t) noexcept { slot_->deallocate(at); }
  [[nodiscard]] HandlerSlot* slot() const noexcept { return slot_; }
  template <class U>
  bool operator==(const SlotAllocator<U>& other) const noexcept {
    return slot_ == other.slot();
  }

 private:
  HandlerSlot* slot_;
};

}  // namespace tributary::transport
