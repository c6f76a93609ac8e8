#include "tests/unit/service_kit/test_ca.h"

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstdio>
#include <stdexcept>

namespace tributary::service {
namespace {

void check(bool good, const char* what) {
  if (!good) throw std::runtime_error(what);
}

std::shared_ptr<EVP_PKEY> new_key() {
  std::shared_ptr<EVP_PKEY> key(EVP_EC_gen("P-256"), EVP_PKEY_free);
  check(key != nullptr, "no key");
  return key;
}

void add_extension(X509* certificate, X509* issuer, int kind, const std::string& value) {
  if (value.empty()) return;
  X509V3_CTX context;
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  const std::unique_ptr<X509_EXTENSION, decltype(&X509_EXTENSION_free)> extension(
      X509V3_EXT_conf_nid(nullptr, &context, kind, value.c_str()), X509_EXTENSION_free);
  check(extension && X509_add_ext(certificate, extension.get(), -1) == 1, value.c_str());
}

std::shared_ptr<X509> new_certificate(EVP_PKEY* key, const std::string& name, long serial, long from, long until) {
  std::shared_ptr<X509> made(X509_new(), X509_free);
  check(X509_set_version(made.get(), X509_VERSION_3) == 1, "version");
  ASN1_INTEGER_set(X509_get_serialNumber(made.get()), serial);
  X509_gmtime_adj(X509_getm_notBefore(made.get()), from);
  X509_gmtime_adj(X509_getm_notAfter(made.get()), until);
  X509_set_pubkey(made.get(), key);
  X509_NAME_add_entry_by_txt(X509_get_subject_name(made.get()), "CN", MBSTRING_ASC,
                             reinterpret_cast<const unsigned char*>(name.c_str()), -1, -1, 0);
  return made;
}

template <class Write>
void write_pem(const std::string& path, mode_t mode, Write write) {
  const std::string draft = path + ".new";
  std::FILE* file = std::fopen(draft.c_str(), "w");
  check(file != nullptr && write(file) == 1 && std::fclose(file) == 0, path.c_str());
  check(::chmod(draft.c_str(), mode) == 0 && std::rename(draft.c_str(), path.c_str()) == 0, path.c_str());
}

}  // namespace

TestCa::TestCa(std::string folder, const std::string& name)
    : folder_(std::move(folder)), file_(folder_ + "/" + name), key_(new_key()) {
  certificate_ = new_certificate(key_.get(), name, 1, -7200, 7200);
  X509_set_issuer_name(certificate_.get(), X509_get_subject_name(certificate_.get()));
  add_extension(certificate_.get(), certificate_.get(), NID_basic_constraints, "critical,CA:TRUE");
  add_extension(certificate_.get(), certificate_.get(), NID_key_usage, "critical,keyCertSign,cRLSign");
  check(X509_sign(certificate_.get(), key_.get(), EVP_sha256()) != 0, "the CA's signature");
  write_pem(path(), 0644, [this](std::FILE* file) { return PEM_write_X509(file, certificate_.get()); });
}

TestCa::~TestCa() = default;

TlsFiles TestCa::issue(const std::string& file, const Wanted& wanted) {
  const auto key = new_key();
  const long serial = 100 + ++serial_;
  const auto made = new_certificate(key.get(), wanted.common_name, serial, wanted.from_seconds, wanted.until_seconds);
  X509_set_issuer_name(made.get(), X509_get_subject_name(certificate_.get()));
  add_extension(made.get(), certificate_.get(), NID_subject_alt_name, wanted.names);
  add_extension(made.get(), certificate_.get(), NID_ext_key_usage, wanted.usage);
  check(X509_sign(made.get(), key_.get(), EVP_sha256()) != 0, "the certificate's signature");
  const std::string base = folder_ + "/" + file;
  write_pem(base + ".key", 0600, [&](std::FILE* out) {
    return PEM_write_PrivateKey(out, key.get(), nullptr, nullptr, 0, nullptr, nullptr);
  });
  write_pem(base + ".pem", 0644, [&](std::FILE* out) { return PEM_write_X509(out, made.get()); });
  issued_.emplace_back(file, serial);
  return {.ca = path(), .cert = base + ".pem", .key = base + ".key", .crl = ""};
}

std::string TestCa::revoke(const std::string& file, const std::vector<std::string>& issued, long until_seconds) {
  const std::shared_ptr<X509_CRL> list(X509_CRL_new(), X509_CRL_free);
  const std::shared_ptr<ASN1_TIME> from(X509_gmtime_adj(nullptr, -7200), ASN1_TIME_free);
  const std::shared_ptr<ASN1_TIME> until(X509_gmtime_adj(nullptr, until_seconds), ASN1_TIME_free);
  X509_CRL_set_version(list.get(), X509_CRL_VERSION_2);
  X509_CRL_set_issuer_name(list.get(), X509_get_subject_name(certificate_.get()));
  X509_CRL_set1_lastUpdate(list.get(), from.get());
  X509_CRL_set1_nextUpdate(list.get(), until.get());
  for (const auto& [name, serial] : issued_) {
    if (std::ranges::find(issued, name) == issued.end()) continue;
    X509_REVOKED* const entry = X509_REVOKED_new();
    const std::shared_ptr<ASN1_INTEGER> number(ASN1_INTEGER_new(), ASN1_INTEGER_free);
    ASN1_INTEGER_set(number.get(), serial);
    X509_REVOKED_set_serialNumber(entry, number.get());
    X509_REVOKED_set_revocationDate(entry, from.get());
    X509_CRL_add0_revoked(list.get(), entry);
  }
  check(X509_CRL_sign(list.get(), key_.get(), EVP_sha256()) != 0, "the list's signature");
  const std::string path = folder_ + "/" + file + ".pem";
  write_pem(path, 0644, [&](std::FILE* out) { return PEM_write_X509_CRL(out, list.get()); });
  return path;
}

}  // namespace tributary::service
