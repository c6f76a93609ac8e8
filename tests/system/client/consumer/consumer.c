#include <stdio.h>
#include <tributary/tributary.h>

int main(void) {
  tributary_config config = TRIBUTARY_CONFIG_INITIALIZER;
  tributary_unique_id id;
  tributary_comm* comm = NULL;
  float value = 3, sum = 0;
  int major = -1;
  config.timeout_ms = 10000;
  if (tributary_version(&major, NULL, NULL) != TRIBUTARY_OK || major != TRIBUTARY_VERSION_MAJOR) return 1;
  if (tributary_get_unique_id(&id) != TRIBUTARY_OK ||
      tributary_comm_init_rank_config(&comm, 1, &id, 0, &config) != TRIBUTARY_OK ||
      tributary_all_reduce(&value, &sum, 1, TRIBUTARY_FLOAT32, TRIBUTARY_SUM, comm, NULL) != TRIBUTARY_OK ||
      tributary_comm_destroy(comm) != TRIBUTARY_OK) {
    fprintf(stderr, "%s\n", tributary_last_error(NULL));
    return 1;
  }
  return sum == 3 ? 0 : 1;
}
