#include "client/api/last_error.h"

#include <atomic>
#include <exception>

namespace tributary::client {
namespace {

struct ThreadError {
  std::string sentence;
  std::uint64_t comm = 0;
  std::string shown;  // the text that the last call of last_error() returned
};

ThreadError& this_thread() {
  thread_local ThreadError error;
  return error;
}

std::uint64_t next_id() {
  static std::atomic<std::uint64_t> last{0};
  return ++last;
}

}  // namespace

tributary_status to_status(Errc code) noexcept {
  switch (code) {
    case Errc::bad_argument:
      return TRIBUTARY_ERROR_BAD_ARGUMENT;
    case Errc::bad_config:
      return TRIBUTARY_ERROR_BAD_CONFIG;
    case Errc::timed_out:
      return TRIBUTARY_ERROR_TIMED_OUT;
    case Errc::peer_gone:
      return TRIBUTARY_ERROR_PEER_GONE;
    case Errc::denied:
      return TRIBUTARY_ERROR_DENIED;
    case Errc::mismatch:
      return TRIBUTARY_ERROR_MISMATCH;
    case Errc::retry:
    case Errc::exhausted:
      return TRIBUTARY_ERROR_EXHAUSTED;
    case Errc::unsupported:
      return TRIBUTARY_ERROR_UNSUPPORTED;
    case Errc::unreachable:
      return TRIBUTARY_ERROR_UNREACHABLE;
    case Errc::io:
      return TRIBUTARY_ERROR_SYSTEM;
    case Errc::aborted:
      return TRIBUTARY_ERROR_ABORTED;
    case Errc::corrupt:
      return TRIBUTARY_ERROR_INTERNAL;
  }
  return TRIBUTARY_ERROR_INTERNAL;  // a message of another rank may have a code that this version does not know
}

CommErrors::CommErrors() : id_(next_id()) {}

void CommErrors::set(const std::string& sentence) {
  std::lock_guard lock(mutex_);
  sentence_ = sentence;
}

std::string CommErrors::get() const {
  std::lock_guard lock(mutex_);
  return sentence_;
}

tributary_status report(const Error& error, CommErrors* comm) noexcept {
  return report(error.code, error.message, comm);
}

tributary_status report(Errc code, const std::string& sentence, CommErrors* comm) noexcept {
  try {
    ThreadError& mine = this_thread();
    mine.sentence = sentence;
    mine.comm = comm != nullptr ? comm->id() : 0;
    if (comm != nullptr) comm->set(sentence);
  } catch (const std::exception&) {
    // Return only the status: there is no memory for the sentence.
  }
  return to_status(code);
}

const char* last_error(const CommErrors* comm) noexcept {
  try {
    ThreadError& mine = this_thread();
    mine.shown = comm == nullptr || comm->id() == mine.comm ? mine.sentence : comm->get();
    return mine.shown.c_str();
  } catch (const std::exception&) {
    return "there is no memory for the text of the last error";
  }
}

}  // namespace tributary::client
