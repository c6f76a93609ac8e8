#pragma once
// A certificate as the rest of the code sees it, without types of OpenSSL.
#include <cstdint>
#include <string>
#include <vector>

struct x509_st;

namespace tributary::service {

struct Certificate {
  std::string subject;  // as RFC 2253 writes it: "CN=leaf-a,O=Physics"
  std::string issuer;   // the subject of the CA that signed it
  std::vector<std::string>
      names;                    // its alternative names: "DNS:leaf-a", "IP:10.0.0.7", "URI:spiffe://x/y", "email:a@b"
  std::string serial;           // in hexadecimal
  std::int64_t not_before = 0;  // seconds since 1970-01-01 UTC
  std::int64_t not_after = 0;   // seconds since 1970-01-01 UTC
};

/// Names that cannot be printed, and all beyond the first 64, are left out.
[[nodiscard]] Certificate describe_certificate(x509_st& certificate);
/// Returns "2026-11-25 19:04:00 UTC".
[[nodiscard]] std::string utc_text(std::int64_t unix_seconds);

}  // namespace tributary::service
