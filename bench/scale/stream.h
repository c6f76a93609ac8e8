#pragma once
// The model of the network, and one direction of a TCP connection, for all simulators.
#include <cstdint>
#include <deque>
#include <simgrid/s4u.hpp>

namespace s4u = simgrid::s4u;

/// Chooses the plain flow model: flows share a link equally, with any round trips, and do not slow down flows in the
/// other direction.
inline void use_plain_shares() {
  s4u::Engine::set_config("network/model:CM02");
  s4u::Engine::set_config("network/crosstraffic:0");
  s4u::Engine::set_config("network/TCP-gamma:0");
  // Size of each actor's stack, in KiB; it is small because the simulation has hundreds of thousands of actors. With
  // guard pages they would need more mappings than Linux allows.
  s4u::Engine::set_config("contexts/stack-size:32");
  s4u::Engine::set_config("contexts/guard-size:0");
}

/// A computer whose cores run all processes.
class Machine {
 public:
  Machine(s4u::Host* cores, double seconds_per_byte)
      : cores_(cores), flops_per_byte_(seconds_per_byte * cores->get_speed()) {}

  /// Begins to process bytes, on one core at a time.
  s4u::ExecPtr work(double bytes) {
    auto work = s4u::Exec::init()->set_flops_amount(bytes * flops_per_byte_)->set_host(cores_);
    work->start();
    return work;
  }

 private:
  s4u::Host* cores_;
  double flops_per_byte_;
};

/// One direction of a TCP connection: messages arrive in the order in which they were sent, one after the other.
class Stream {
 public:
  /// If no machine is given, sending and receiving cost no processor time.
  Stream(s4u::Host* from, s4u::Host* to, double hop_seconds, Machine* machine = nullptr)
      : from_(from), to_(to), hop_seconds_(hop_seconds), machine_(machine) {
    s4u::Actor::create("stream", from, [this] { carry(); })->daemonize();
  }

  void send(double bytes) {
    unsent_.push_back(bytes);
    to_send_->release();
  }

  void receive() {
    arrived_->acquire();
    const double readable = readable_at_.front();
    readable_at_.pop_front();
    constexpr double kClockStep = 1e-9;
    if (readable > s4u::Engine::get_clock() + kClockStep) s4u::this_actor::sleep_until(readable);
  }

 private:
  [[noreturn]] void carry() {
    for (;;) {
      to_send_->acquire();
      const double bytes = unsent_.front();
      unsent_.pop_front();
      // Both ends use their processors while the bytes pass.
      const s4u::ExecPtr work = machine_ == nullptr ? nullptr : machine_->work(2 * bytes);
      s4u::Comm::sendto(from_, to_, static_cast<std::uint64_t>(bytes));
      if (work != nullptr) work->wait();
      readable_at_.push_back(s4u::Engine::get_clock() + hop_seconds_);
      arrived_->release();
    }
  }

  s4u::Host* from_;
  s4u::Host* to_;
  double hop_seconds_;
  Machine* machine_;
  std::deque<double> unsent_;
  std::deque<double> readable_at_;
  s4u::SemaphorePtr to_send_ = s4u::Semaphore::create(0);
  s4u::SemaphorePtr arrived_ = s4u::Semaphore::create(0);
};
