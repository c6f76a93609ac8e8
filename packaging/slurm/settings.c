#include "packaging/slurm/settings.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "packaging/slurm/options.h"

static char* trimmed(char* text) {
  text += strspn(text, " \t");
  size_t length = strcspn(text, "#\r\n");
  while (length > 0 && (text[length - 1] == ' ' || text[length - 1] == '\t')) --length;
  text[length] = '\0';
  return text;
}

static int is_time(const char* text) {
  static const char* const units[] = {"s", "min", "h", "d"};
  const size_t digits = strspn(text, "0123456789");
  for (size_t i = 0; i < sizeof units / sizeof units[0]; ++i) {
    if (digits > 0 && text[0] != '0' && strcmp(text + digits, units[i]) == 0) return 1;
  }
  return 0;
}

static char* value_of(struct TributarySettings* settings, const char* key) {
  if (strcmp(key, "manager") == 0) return settings->manager;
  if (strcmp(key, "tls_ca") == 0) return settings->tls_ca;
  if (strcmp(key, "token_file") == 0) return settings->token_file;
  if (strcmp(key, "job_directory") == 0) return settings->job_directory;
  if (strcmp(key, "job_token_life") == 0) return settings->job_token_life;
  if (strcmp(key, "command") == 0) return settings->command;
  return NULL;
}

/* Returns NULL, or the mistake in `line`. */
static const char* read_line(char* line, struct TributarySettings* settings) {
  if (*trimmed(line) == '\0') return NULL;
  char* equals = strchr(line, '=');
  if (equals == NULL) return "this is no `key = value`";
  *equals = '\0';
  char* place = value_of(settings, trimmed(line));
  const char* value = trimmed(equals + 1);
  if (place == NULL)
    return "unknown key; the keys are manager, tls_ca, token_file, job_directory, job_token_life and command";
  if (strlen(value) >= kSettingBytesMax) return "the value is longer than 255 bytes";
  const int is_path = place != settings->manager && place != settings->job_token_life;
  if (is_path && value[0] != '/') return "the value must be a whole path, which begins with /";
  if (place == settings->manager && *value != '\0' && strncmp(value, "http://", 7) != 0 &&
      strncmp(value, "https://", 8) != 0)
    return "the value must be a URL, as http://manager:7470 or https://manager:7470";
  if (place == settings->job_token_life && *value != '\0' && !is_time(value))
    return "the value must be a time, as 7d, 12h, 90min or 300s";
  (void)snprintf(place, kSettingBytesMax, "%s", value);
  return NULL;
}

int tributary_read_settings(const char* path, struct TributarySettings* settings, char* sentence) {
  *settings = (struct TributarySettings){.manager = "",
                                         .tls_ca = "",
                                         .token_file = "/etc/tributary/job.token",
                                         .job_directory = "/run/tributary-jobs",
                                         .job_token_life = "",
                                         .command = "/usr/bin/tributary"};
  FILE* file = fopen(path, "re");
  if (file == NULL) {
    if (errno == ENOENT) return 0;
    (void)snprintf(sentence, kSentenceBytesMax, "%s cannot be read: %s", path, strerror(errno));
    return -1;
  }
  char line[1024];
  const char* mistake = NULL;
  int number = 0;
  while (mistake == NULL && fgets(line, sizeof line, file) != NULL) {
    ++number;
    mistake = strlen(line) == sizeof line - 1 ? "the line is longer than 1022 bytes" : read_line(line, settings);
  }
  (void)fclose(file);
  if (mistake == NULL) return 0;
  (void)snprintf(sentence, kSentenceBytesMax, "%s:%d: %s", path, number, mistake);
  return -1;
}
