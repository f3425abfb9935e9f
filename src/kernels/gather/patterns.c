/* Reading patterns: each line is checked whatever wrote it, for its indices become addresses. */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "patterns.h"

const char *const gather_kind_names[] = {"gather", "scatter", "gs", "multigather", "multiscatter", NULL};

enum { COUNT, WRAP, DELTA, DELTA_GATHER, DELTA_SCATTER, PATTERN, PATTERN_GATHER, PATTERN_SCATTER, KEYS };

static const char *const key_names[] = {"count", "wrap", "delta", "delta-gather", "delta-scatter", "pattern", "pattern-gather",
                                        "pattern-scatter"};

static const bool needed[GATHER_KINDS][KEYS] = {
    [GATHER] = {[COUNT] = true, [WRAP] = true, [DELTA] = true, [PATTERN] = true},
    [SCATTER] = {[COUNT] = true, [WRAP] = true, [DELTA] = true, [PATTERN] = true},
    [GS] = {[COUNT] = true, [DELTA_GATHER] = true, [DELTA_SCATTER] = true, [PATTERN_GATHER] = true, [PATTERN_SCATTER] = true},
    [MULTIGATHER] = {[COUNT] = true, [WRAP] = true, [DELTA] = true, [PATTERN] = true, [PATTERN_GATHER] = true},
    [MULTISCATTER] = {[COUNT] = true, [WRAP] = true, [DELTA] = true, [PATTERN] = true, [PATTERN_SCATTER] = true},
};

/* One line in hand. */
typedef struct {
    const char *file;
    int number;
    const char *name;
    size_t value[KEYS];         /* of the keys that are numbers; of the lists, their lengths */
    int32_t *list[KEYS];
} line;

/* Elements of anything: bytes can be counted in 64 bits. */
#define MOST ((size_t)1 << 50)

static size_t whole(const line *l, const char *key, const char *text, size_t least, size_t most)
{
    char *end;
    errno = 0;
    const unsigned long long value = strtoull(text, &end, 10);
    if (!isdigit((unsigned char)*text) || *end || errno || value < least || value > most)
        pl_fail("%s, line %d: %s: '%.24s' is not a whole number from %zu to %zu", l->file, l->number, key, text, least, most);
    return (size_t)value;
}

static void read_list(line *l, int key, char *text)
{
    size_t n = 1;
    for (const char *p = text; *p; p++)
        n += *p == ',';
    l->value[key] = n;
    l->list[key] = pl_allocate(n * sizeof(int32_t), "a pattern");
    for (size_t i = 0; i < n; i++)
        l->list[key][i] = (int32_t)whole(l, key_names[key], strsep(&text, ","), 0, GATHER_INDEX_MAX);
}

static void read_key(line *l, gather_kind kind, bool *seen, char *text)
{
    char *const equals = strchr(text, '=');
    int key = 0;
    if (equals)
        *equals = 0;
    if (equals && !strcmp(text, "name")) {
        l->name = strdup(equals + 1);
        return;
    }
    while (key < KEYS && strcmp(key_names[key], text))
        key++;
    if (!equals || key == KEYS || !needed[kind][key])
        pl_fail("%s, line %d: '%.24s' is nothing that %s has", l->file, l->number, text, gather_kind_names[kind]);
    if (seen[key])
        pl_fail("%s, line %d: %s stands there twice", l->file, l->number, text);
    seen[key] = true;
    if (key >= PATTERN)
        read_list(l, key, equals + 1);
    else
        l->value[key] = whole(l, text, equals + 1, key < DELTA ? 1 : 0, MOST);
}

static size_t largest(const int32_t *list, size_t n)
{
    int32_t most = 0;
    for (size_t i = 0; i < n; i++)
        most = list[i] > most ? list[i] : most;
    return (size_t)most;
}

/* Elements that `count` rows reach in a sparse array. */
static size_t reach(const line *l, const int32_t *list, size_t n, size_t delta)
{
    size_t far;
    if (__builtin_mul_overflow(delta, l->value[COUNT] - 1, &far) || far > MOST)
        pl_fail("%s, line %d: the last row begins beyond all memory: choose a smaller count or delta", l->file, l->number);
    return far + largest(list, n) + 1;
}

static gather_pattern finish(const line *l, gather_kind kind)
{
    const bool multi = kind == MULTIGATHER || kind == MULTISCATTER;
    const int first = kind == GS ? PATTERN_GATHER : PATTERN, delta = kind == GS ? DELTA_GATHER : DELTA;
    const int second = kind == MULTIGATHER ? PATTERN_GATHER : PATTERN_SCATTER;
    gather_pattern p = {.name = l->name, .kind = kind, .count = l->value[COUNT], .wrap = kind == GS ? 1 : l->value[WRAP],
                        .delta = l->value[delta], .delta_to = l->value[DELTA_SCATTER], .index = l->list[first],
                        .indices = l->value[first], .length = l->value[first]};
    if (kind == GS || multi) {
        p.inner = l->list[second];
        p.length = l->value[second];
    }
    if (kind == GS && p.length != p.indices)
        pl_fail("%s, line %d: pattern-gather has %zu indices and pattern-scatter %zu: give as many to both", l->file, l->number,
                p.indices, p.length);
    if (multi && largest(p.inner, p.length) >= p.indices)
        pl_fail("%s, line %d: %s: index %zu is outside the pattern, which has %zu indices", l->file, l->number,
                key_names[second], largest(p.inner, p.length), p.indices);
    if (p.length > MOST / p.count)
        pl_fail("%s, line %d: more elements than can be counted: choose a smaller count", l->file, l->number);
    const size_t elements = reach(l, p.index, p.indices, p.delta);
    if (kind == SCATTER || kind == MULTISCATTER)
        p.written = elements;
    else
        p.read = elements;
    if (kind == GS)
        p.written = reach(l, p.inner, p.length, p.delta_to);
    return p;
}

static gather_pattern read_line(const char *file, int number, char *text)
{
    line l = {.file = file, .number = number, .name = ""};
    bool seen[KEYS] = {false};
    int kind = 0;
    const char *const word = strsep(&text, " ");
    while (gather_kind_names[kind] && strcmp(gather_kind_names[kind], word))
        kind++;
    if (kind == GATHER_KINDS)
        pl_fail("%s, line %d: no kernel '%.24s': a line begins with gather, scatter, gs, multigather or multiscatter (not JSON: "
                "the check gather_patterns makes such lines of it)", file, number, word);
    while (text)
        read_key(&l, (gather_kind)kind, seen, strsep(&text, " "));
    for (int key = 0; key < KEYS; key++)
        if (needed[kind][key] && !seen[key])
            pl_fail("%s, line %d: %s needs %s", file, number, gather_kind_names[kind], key_names[key]);
    return finish(&l, (gather_kind)kind);
}

const gather_patterns *gather_read_patterns(const char *file)
{
    static gather_patterns all;
    if (all.count)
        return &all;
    FILE *const f = fopen(file, "r");
    char *text = NULL;
    size_t room = 0;
    ssize_t length;
    if (!f)
        pl_fail("--pattern %s: %s: give a file of patterns", file, strerror(errno));
    while ((length = getline(&text, &room, f)) >= 0) {
        if (length && text[length - 1] == '\n')
            text[--length] = 0;
        if (strlen(text) != (size_t)length)
            pl_fail("%s, line %d: holds a byte 0: this is no text file", file, all.count + 1);
        all.pattern = pl_grow(all.pattern, (size_t)(all.count + 1) * sizeof *all.pattern, "the patterns");
        all.pattern[all.count] = read_line(file, all.count + 1, text);
        all.count++;
    }
    if (ferror(f) || !all.count)
        pl_fail("--pattern %s: %s", file, ferror(f) ? strerror(errno) : "is empty: give a line for each pattern");
    free(text);
    fclose(f);
    return &all;
}
