/* SPDX-License-Identifier: Apache-2.0 */
/* tests/crash/model.c - what must be in the store. */
#include <stdlib.h>
#include <string.h>

#include "crash/harness.h"

static void *must(void *p)
{
	if (!p)
		abort();
	return p;
}

void model_free(struct model *m)
{
	free(m->blocks);
	free(m->fates);
	memset(m, 0, sizeof *m);
}

void model_copy(struct model *to, const struct model *from)
{
	*to = *from;
	to->room = from->count + 8;
	to->txns_room = from->txns + 8;
	to->blocks = must(malloc(to->room * sizeof *to->blocks));
	to->fates = must(malloc(to->txns_room));
	if (from->count > 0)
		memcpy(to->blocks, from->blocks, from->count * sizeof *to->blocks);
	if (from->txns > 0)
		memcpy(to->fates, from->fates, from->txns);
}

size_t model_txn(struct model *m)
{
	if (m->txns == 0)
		m->txns = 1; /* 0 means none */
	if (m->txns >= m->txns_room) {
		m->txns_room = m->txns * 2 + 16;
		m->fates = must(realloc(m->fates, m->txns_room));
		m->fates[0] = FATE_OUT;
	}
	m->fates[m->txns] = FATE_OPEN;
	return m->txns++;
}

void model_put(struct model *m, size_t txn, uint64_t id, uint64_t length, uint64_t content)
{
	if (m->count == m->room) {
		m->room = m->room * 2 + 16;
		m->blocks = must(realloc(m->blocks, m->room * sizeof *m->blocks));
	}
	m->blocks[m->count++] =
		(struct block){.id = id, .length = length, .content = content, .put = txn};
	if (id > m->max_exposed)
		m->max_exposed = id;
}

void model_crash(struct model *m)
{
	for (size_t i = 1; i < m->txns; i++)
		if (m->fates[i] == FATE_OPEN)
			m->fates[i] = FATE_OUT;
}

enum expectation model_expects(const struct model *m, const struct block *b)
{
	uint8_t put = m->fates[b->put], del = b->del ? m->fates[b->del] : FATE_OUT;

	if (put == FATE_OUT || put == FATE_OPEN || del == FATE_IN)
		return ABSENT;
	return put == FATE_IN && del != FATE_COMMITTING ? PRESENT : EITHER;
}

bool model_learn(struct model *m, const struct block *b, bool present)
{
	/* Only a block whose put is known to be in is ever deleted, so one of the two is unknown.
	 */
	size_t txn = m->fates[b->put] == FATE_COMMITTING ? b->put : b->del;
	uint8_t now = (txn == b->put) == present ? FATE_IN : FATE_OUT;

	if (m->fates[txn] != FATE_COMMITTING)
		return m->fates[txn] == now;
	m->fates[txn] = now;
	return true;
}
