#include "client/api/spare_meetings.h"

#include "client/api/meeting.h"

namespace tributary::client {

SpareMeetings::~SpareMeetings() {
  if (const auto own = decode_unique_id(ids_[own_])) take_meeting(*own).reset();
}

}  // namespace tributary::client
