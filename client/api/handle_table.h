#pragma once
// The objects behind the C API's opaque pointers. A handle is not an address: it contains a place in a table and the
// generation of the place's use. So the table recognizes a handle that was freed, that a fork inherited, or that never
// was a handle, and never dereferences it.
//
//   63          28 27      4 3    0
//   | generation  | place   | kind |      kind is not 0, so no handle is NULL
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

namespace tributary::client {

static_assert(sizeof(void*) == 8, "handles need 64-bit pointers");

enum class HandleKind : std::uint8_t { communicator = 1, request = 2, memory = 3 };

/// A table of handles. Any thread may make any call. `Opaque` is the C API's incomplete type, `T` the object's type.
/// Objects are shared: if one thread removes an object, it stays alive for another thread that uses it.
template <class Opaque, class T, HandleKind kind>
class HandleTable {
  struct Place;

 public:
  static constexpr std::size_t kPlacesPerChunk = 1024;
  static constexpr std::size_t kChunksMax = 1024;
  static constexpr std::size_t kPlacesMax = kPlacesPerChunk * kChunksMax;

  /// The object behind a handle, for one call on one thread: cheaper than find(). The object lives until the Pinned is
  /// destroyed, even if the handle ends meanwhile. The table does not use a place again while its object is pinned.
  class Pinned {
   public:
    Pinned(Pinned&& other) noexcept : table_(other.table_), place_(std::exchange(other.place_, nullptr)) {}
    Pinned& operator=(Pinned&&) = delete;
    ~Pinned() {
      if (place_ != nullptr) table_.unpin(*place_);
    }
    explicit operator bool() const noexcept { return place_ != nullptr; }
    T* operator->() const noexcept { return place_->object.get(); }
    T& operator*() const noexcept { return *place_->object; }
    /// Returns the object, for a use that may outlive this pin.
    [[nodiscard]] const std::shared_ptr<T>& share() const noexcept { return place_->object; }

   private:
    friend class HandleTable;
    Pinned(HandleTable& table, Place* place) noexcept : table_(table), place_(place) {}
    HandleTable& table_;
    Place* place_;
  };

  /// Adds an object, and returns its handle; nullptr if kPlacesMax handles are live.
  [[nodiscard]] Opaque* insert(std::shared_ptr<T> object) {
    const auto place = take_place();
    if (!place) return nullptr;
    Place& at = place_at(*place);
    std::lock_guard lock(at.mutex);
    at.object = std::move(object);
    return to_handle(*place, at.generation.load(std::memory_order_relaxed));
  }

  /// Returns the object behind a handle; nullptr if the handle is not live.
  [[nodiscard]] std::shared_ptr<T> find(const Opaque* handle) const {
    const Place* at = place_of(handle);
    if (at == nullptr) return nullptr;
    std::lock_guard lock(at->mutex);
    return at->generation.load(std::memory_order_relaxed) == generation_of(handle) ? at->object : nullptr;
  }

  /// Returns the object behind a handle; empty if the handle is not live.
  [[nodiscard]] Pinned pin(const Opaque* handle) {
    Place* at = place_of(handle);
    if (at == nullptr) return {*this, nullptr};
    // The accesses are sequentially consistent: this load sees that the handle has ended, or remove() sees the pin.
    at->pins.fetch_add(1);
    if (at->generation.load() == generation_of(handle)) return {*this, at};
    unpin(*at);
    return {*this, nullptr};
  }

  /// Ends the handle, and returns its object; nullptr if the handle was not live. If several callers remove one handle,
  /// only one of them gets the object.
  std::shared_ptr<T> remove(const Opaque* handle) {
    Place* at = place_of(handle);
    if (at == nullptr) return nullptr;
    std::shared_ptr<T> object;
    bool pinned = false;
    {
      std::lock_guard lock(at->mutex);
      if (at->generation.load() != generation_of(handle) || !at->object) return nullptr;
      at->generation.store(next(generation_of(handle)));
      pinned = at->pins.load() != 0;
      object = pinned ? at->object : std::exchange(at->object, nullptr);
      if (pinned) at->ended.store(true);
    }
    if (!pinned) {
      give_back(*at);
    } else if (at->pins.load() == 0) {
      clear(*at);  // the last pin may have ended before it could see that the handle has ended
    }
    return object;
  }

  /// Ends every handle for whose object `is_one(object)` returns true, and calls `then(object)` for each of them.
  template <class Predicate, class Then>
  void remove_if(Predicate is_one, Then then) {
    std::size_t used = 0;
    {
      std::lock_guard lock(mutex_);
      used = used_;
    }
    for (std::size_t i = 0; i < used; ++i) {
      Place& at = place_at(i);
      const Opaque* handle = nullptr;
      {
        std::lock_guard lock(at.mutex);
        if (at.object && !at.ended.load() && is_one(*at.object)) handle = to_handle(i, at.generation.load());
      }
      if (handle == nullptr) continue;
      if (auto object = remove(handle)) then(*object);
    }
  }

  /// Returns the generation of a place's next use; it is at most kGenerationMax.
  [[nodiscard]] static constexpr std::uint64_t next(std::uint64_t generation) noexcept {
    return generation == kGenerationMax ? 1 : generation + 1;
  }
  static constexpr std::uint64_t kGenerationMax = (std::uint64_t{1} << 36) - 1;

  [[nodiscard]] std::size_t live() const {
    std::lock_guard lock(mutex_);
    return used_ - free_.size();
  }

 private:
  static constexpr unsigned kPlaceShift = 4;
  static constexpr unsigned kGenerationShift = 28;
  static_assert(kPlacesMax <= std::size_t{1} << (kGenerationShift - kPlaceShift));
  static_assert(kGenerationMax == ~std::uint64_t{0} >> kGenerationShift);

  struct Place {
    mutable std::mutex mutex;
    std::atomic<std::uint64_t> generation{1};  // number of the present or next use; handles have 36 of its bits
    std::atomic<std::uint32_t> pins{0};
    std::atomic<bool> ended{false};  // the handle was removed; the object ends with its last pin
    std::size_t index = 0;
    std::shared_ptr<T> object;
  };
  using Chunk = std::array<Place, kPlacesPerChunk>;

  static std::uint64_t bits(const Opaque* handle) { return reinterpret_cast<std::uintptr_t>(handle); }
  static std::uint64_t generation_of(const Opaque* handle) { return bits(handle) >> kGenerationShift; }
  static std::size_t index_of(const Opaque* handle) {
    return (bits(handle) >> kPlaceShift) & ((std::uint64_t{1} << (kGenerationShift - kPlaceShift)) - 1);
  }
  static Opaque* to_handle(std::size_t place, std::uint64_t generation) {
    const std::uint64_t value =
        (generation << kGenerationShift) | (std::uint64_t{place} << kPlaceShift) | static_cast<std::uint64_t>(kind);
    return reinterpret_cast<Opaque*>(static_cast<std::uintptr_t>(value));
  }

  void unpin(Place& at) {
    if (at.pins.fetch_sub(1) == 1 && at.ended.load()) clear(at);
  }
  /// Called by the thread that ends the handle, and by the thread that ends the last pin; the first of the two clears
  /// the place.
  void clear(Place& at) {
    std::shared_ptr<T> object;  // destroyed after the lock is released
    {
      std::lock_guard lock(at.mutex);
      if (!at.ended.load() || at.pins.load() != 0) return;
      object = std::exchange(at.object, nullptr);
      at.ended.store(false);
    }
    give_back(at);
  }
  void give_back(const Place& at) {
    std::lock_guard lock(mutex_);
    free_.push_back(at.index);
  }

  [[nodiscard]] Place* place_of(const Opaque* handle) const {
    if ((bits(handle) & 0xF) != static_cast<std::uint64_t>(kind)) return nullptr;
    const std::size_t index = index_of(handle);
    if (index >= kPlacesMax) return nullptr;
    Chunk* chunk = chunks_[index / kPlacesPerChunk].load(std::memory_order_acquire);  // pairs with take_place()
    return chunk == nullptr ? nullptr : &(*chunk)[index % kPlacesPerChunk];
  }
  [[nodiscard]] Place& place_at(std::size_t index) const {
    return (*chunks_[index / kPlacesPerChunk].load(std::memory_order_acquire))[index % kPlacesPerChunk];
  }

  [[nodiscard]] std::optional<std::size_t> take_place() {
    std::lock_guard lock(mutex_);
    if (!free_.empty()) {
      const std::size_t place = free_.front();
      free_.pop_front();
      return place;
    }
    if (used_ == kPlacesMax) return std::nullopt;
    if (used_ % kPlacesPerChunk == 0) {
      owned_.push_back(std::make_unique<Chunk>());
      for (std::size_t i = 0; i < kPlacesPerChunk; ++i) (*owned_.back())[i].index = used_ + i;
      chunks_[used_ / kPlacesPerChunk].store(owned_.back().get(), std::memory_order_release);  // pairs with place_of()
    }
    return used_++;
  }

  mutable std::mutex mutex_;
  std::deque<std::size_t> free_;
  std::size_t used_ = 0;  // number of places that were ever used
  std::deque<std::unique_ptr<Chunk>> owned_;
  std::array<std::atomic<Chunk*>, kChunksMax> chunks_{};
};

}  // namespace tributary::client
