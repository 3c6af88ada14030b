/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz/replay.c - runs a fuzz target over the files and folders named, so that every build,
 * whatever its compiler, goes through the seeds and through each input that once failed.
 */
#include <dirent.h>
#include <stdio.h>
#include <sys/stat.h>

#include "fuzz.h"

static unsigned inputs;

static int replay_file(const char *path, size_t bytes)
{
	uint8_t *data = malloc(bytes ? bytes : 1);
	FILE *file = fopen(path, "rb");
	int rc = -1;

	if (data && file && fread(data, 1, bytes, file) == bytes) {
		LLVMFuzzerTestOneInput(data, bytes);
		inputs++;
		rc = 0;
	}
	if (rc < 0)
		fprintf(stderr, "replay %s: can't be read\n", path);
	if (file)
		fclose(file);
	free(data);
	return rc;
}

static int replay(const char *path);

static int replay_folder(const char *path)
{
	DIR *folder = opendir(path);
	struct dirent *entry;
	char name[4096];
	int rc = 0;

	if (!folder) {
		fprintf(stderr, "replay %s: can't be opened\n", path);
		return -1;
	}
	while (rc == 0 && (entry = readdir(folder))) {
		if (entry->d_name[0] == '.')
			continue;
		if (snprintf(name, sizeof(name), "%s/%s", path, entry->d_name) < (int)sizeof(name))
			rc = replay(name);
	}
	closedir(folder);
	return rc;
}

static int replay(const char *path)
{
	struct stat st;

	if (stat(path, &st) < 0) {
		fprintf(stderr, "replay %s: not there\n", path);
		return -1;
	}
	return S_ISDIR(st.st_mode) ? replay_folder(path) : replay_file(path, (size_t)st.st_size);
}

int main(int argc, char **argv)
{
	LLVMFuzzerTestOneInput(NULL, 0);
	for (int i = 1; i < argc; i++)
		if (replay(argv[i]) < 0)
			return 1;
	printf("%u inputs\n", inputs);
	/* A test without inputs would pass for ever. */
	return argc > 1 && inputs == 0;
}
