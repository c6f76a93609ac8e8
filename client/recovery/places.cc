#include "client/recovery/places.h"

#include <algorithm>
#include <utility>

#include "tributary/protocol/assert.h"

namespace tributary::client {
namespace {

/// The fetch of all pages. The callback of the awaited answer owns this object.
class Fetch : public std::enable_shared_from_this<Fetch> {
 public:
  Fetch(GroupService& service, std::shared_ptr<const GroupDescriptor> descriptor, std::uint32_t nranks, PlacesUser user)
      : service_(service), descriptor_(std::move(descriptor)), nranks_(nranks), user_(std::move(user)) {}

  void ask() {
    TRIBUTARY_ASSERT(next_ < nranks_, "a page from rank {} of {} is asked for", next_, nranks_);
    const std::uint32_t count = std::min(kTokenPageRanksMax, nranks_ - next_);
    service_.places(descriptor_->group, descriptor_->epoch, next_, count,
                    [self = shared_from_this(), count](const Result<TokenPage>& page) { self->take(page, count); });
  }

 private:
  void take(const Result<TokenPage>& page, std::uint32_t count) {
    if (!user_.wanted()) return;
    if (!page) return user_.failed(page.error().message);
    if (!fits(*page, count)) return user_.failed("the manager gave places of other ranks than were asked for");
    user_.page_came();
    for (std::uint32_t rank = next_; rank < next_ + count; ++rank) {
      user_.give(rank, page->for_rank(*descriptor_, rank));
      if (!user_.wanted()) return;
    }
    TRIBUTARY_ASSERT(count > 0 && count <= nranks_ - next_, "a page of {} ranks from rank {} of {}", count, next_,
                     nranks_);
    next_ += count;
    if (next_ < nranks_) ask();
  }
  [[nodiscard]] bool fits(const TokenPage& page, std::uint32_t count) const {
    return page.first_rank == next_ && page.lanes.size() == descriptor_->lanes.size() &&
           std::ranges::all_of(page.lanes, [&](const auto& entries) { return entries.size() == count; });
  }

  GroupService& service_;
  const std::shared_ptr<const GroupDescriptor> descriptor_;
  const std::uint32_t nranks_;
  const PlacesUser user_;
  std::uint32_t next_ = 0;
};

}  // namespace

bool comes_by_pages(const GroupDescriptor& descriptor) noexcept {
  return !descriptor.empty() &&
         std::ranges::all_of(descriptor.lanes, [](const auto& it) { return it.entries.empty(); });
}

void fetch_places(GroupService& service, std::shared_ptr<const GroupDescriptor> descriptor, std::uint32_t nranks,
                  PlacesUser user) {
  std::make_shared<Fetch>(service, std::move(descriptor), nranks, std::move(user))->ask();
}

}  // namespace tributary::client
