#pragma once
// A CA for tests: it issues certificates, wrong ones too, and revocation lists, as PEM files in a folder.
#include <memory>
#include <string>
#include <vector>

#include "service-kit/tls/tls_context.h"

struct evp_pkey_st;
struct x509_st;

namespace tributary::service {

struct Wanted {
  std::string common_name = "server";
  std::string names = "DNS:localhost,IP:127.0.0.1";  // as openssl.cnf writes subjectAltName; empty: none
  long from_seconds = -3600;                         // after now
  long until_seconds = 3600;                         // after now
  std::string usage{};                               // as openssl.cnf writes extendedKeyUsage; empty: any
};

class TestCa {
 public:
  /// Makes the CA's key and certificate; the certificate is in folder/NAME.pem.
  TestCa(std::string folder, const std::string& name);
  ~TestCa();
  TestCa(const TestCa&) = delete;
  TestCa& operator=(const TestCa&) = delete;

  [[nodiscard]] std::string path() const { return file_ + ".pem"; }
  /// Issues a certificate with a new key, in FILE.pem and FILE.key of the folder. Both replace files of the same name
  /// at once. `ca` of the result is this CA.
  [[nodiscard]] TlsFiles issue(const std::string& file, const Wanted& wanted = {});
  /// Writes the list of the certificates that were issued last under these names, and returns its path.
  [[nodiscard]] std::string revoke(const std::string& file, const std::vector<std::string>& issued,
                                   long until_seconds = 3600);

 private:
  const std::string folder_, file_;
  std::shared_ptr<evp_pkey_st> key_;
  std::shared_ptr<x509_st> certificate_;
  long serial_ = 0;
  std::vector<std::pair<std::string, long>> issued_;
};

}  // namespace tributary::service
