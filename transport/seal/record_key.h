#pragma once
// The records of a sealed stream in one direction. A record is a head of 4 bytes, the content and an authenticator of
// 16 bytes:
//
//   +------+---------------------+-----+
//   | head | content             | tag |    head: bytes of content in bits 0-30, bit 31: payload
//   +------+---------------------+-----+
//
// A record of frames has at most 4,032 bytes of content, which continue the stream of frames. A payload record has up
// to 32 KiB, all of the payload of one frame, so the receiver decrypts it to where the payload goes. The record's
// number is the number of records before it. The record does not contain its number, so a record that is lost, repeated
// or moved is not authentic. After 2^22 records the key changes, far below the bounds for AES-GCM (RFC 8446, section
// 5.5, whose records are half as long).
//
// A message of an RDMA connection is a record without a head, because the device tells its length: content of up to
// 64 KiB, sealed in place, and the authenticator. Its keys are those of another carrier (stream_greeting.h). Messages of
// this length have half as many blocks under one key as RFC 8446 allows.
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "transport/seal/stream_greeting.h"

namespace tributary::transport {

inline constexpr std::size_t kRecordHeadBytes = 4;
inline constexpr std::size_t kRecordExtraBytes = kRecordHeadBytes + AeadKey::kTagBytes;
inline constexpr std::size_t kFramesBytesMax = 4032;    // most content of a record of frames
inline constexpr std::size_t kPayloadBytesMax = 32768;  // most content of a payload record

struct RecordHead {
  bool payload = false;
  std::size_t content_bytes = 0;
  [[nodiscard]] std::size_t record_bytes() const noexcept { return content_bytes + kRecordExtraBytes; }
};
/// Reads the head that these bytes, 4 or more, begin with. Empty: the length in it is out of bounds.
[[nodiscard]] std::optional<RecordHead> record_head(std::span<const std::byte> bytes) noexcept;

class RecordKey {
 public:
  static constexpr unsigned kPhaseBits = 22;  // log2 of the records of one key

  enum class Use : std::uint8_t { seals, opens };
  RecordKey(const StreamSecrets& secrets, PacketSecurity level, bool from_client, Use use) noexcept
      : secrets_(secrets), encrypts_(level == PacketSecurity::encrypt), from_client_(from_client), use_(use) {}

  /// The number of the next record.
  [[nodiscard]] std::uint64_t next() const noexcept { return next_; }
  /// Seals `content`, which may already lie at its place in the record, into `record`, which is kRecordExtraBytes
  /// longer. False: OpenSSL fails, and the stream must end.
  [[nodiscard]] bool seal(bool payload, std::span<const std::byte> content, std::span<std::byte> record) noexcept;
  /// Opens a whole record into `content`, which is as long as the head says. False: the record is not authentic; no
  /// byte of `content` may be used, and the stream must end.
  [[nodiscard]] bool open(std::span<std::byte> record, std::span<std::byte> content) noexcept;

  /// Seals a message in place. False: OpenSSL fails, and the connection must end.
  [[nodiscard]] bool seal_message(std::span<std::byte> content, AeadKey::Tag tag) noexcept;
  /// Opens a message in place. False: the message is not authentic; no byte of it may be used, and the connection must
  /// end.
  [[nodiscard]] bool open_message(std::span<std::byte> content, AeadKey::Tag tag) noexcept;

 private:
  [[nodiscard]] bool begin() noexcept;
  [[nodiscard]] bool pass_message(std::span<std::byte> content) noexcept;

  StreamSecrets secrets_;
  bool encrypts_;
  bool from_client_;
  Use use_;
  std::uint64_t next_ = 0;
  AeadKey key_;
};

}  // namespace tributary::transport
