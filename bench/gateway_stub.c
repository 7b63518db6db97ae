/* An upstream that costs next to nothing: chat completions, whole and streamed, from fixed bytes.
 *
 *     cc -O2 -o stub gateway_stub.c && ./stub PORT
 *
 * One thread, epoll, keep-alive, loopback only. The model that a request names decides:
 *
 *     paced...            the events of a stream leave 5 ms apart; otherwise all at once
 *     text-EVENTS-MS...   a stream of so many events with text, so many milliseconds apart
 *     hang...             no answer, ever
 *     cut...              a stream that ends after its first 20 events without a finish
 *     broken...           HTTP 500
 *     anything else       one call: 1.5 KB whole, 61 events streamed
 *
 * GET /stats answers with how many requests came and how many connections are open.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define MAX_FD 16384
#define PIECES 56

typedef struct { char *data; size_t size; } text;

typedef struct {
    int open;
    text in, out;               /* out: what the socket did not take yet */
    size_t sent;
    int next, last;             /* the events of a paced stream that are still to go; -1 is none */
    double due, step;
} connection;

static connection connections[MAX_FD];
static int streaming[MAX_FD], streams, open_count, poller;
static long requests;
static text whole, failure, events[PIECES + 5], text_event, text_end;
static int event_count;

static const char HEAD[] =
    "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\n"
    "cache-control: no-cache\r\nx-request-id: req-0123456789\r\ntransfer-encoding: chunked\r\n\r\n";
static const char START[] =
    "{\"id\":\"chatcmpl-0001\",\"object\":\"chat.completion.chunk\",\"created\":1760000000,"
    "\"model\":\"stub\",\"system_fingerprint\":\"fp_0\",\"choices\":[";
static const char USAGE[] =
    "\"usage\":{\"prompt_tokens\":412,\"completion_tokens\":187,\"total_tokens\":599}";
/* The arguments of the call, as they are written inside a JSON string. */
static const char ARGUMENTS[] =
    "{\\\"title\\\": \\\"Exports of large reports stop half way\\\", \\\"body\\\": \\\"Since the "
    "release of this morning, exports with more than ten thousand rows end after about forty "
    "seconds, and the file that people get is cut in the middle of a row. Small exports work. The "
    "worker log shows that the connection to the database is given back to the pool while rows are "
    "still being read, which points to the change of the pool size. Three customers have asked "
    "about it, one of them needs the file today for an audit. A second worker with the old setting "
    "does not show the problem, so going back to it is the quickest way out; the proper repair is "
    "to hold the connection until the last row was written, and to add a test with a slow "
    "reader.\\\", \\\"priority\\\": \\\"high\\\", \\\"tags\\\": [\\\"exports\\\", \\\"reports\\\", "
    "\\\"database\\\"], \\\"due_days\\\": 2}";

static double now(void) {
    struct timespec moment;
    clock_gettime(CLOCK_MONOTONIC, &moment);
    return moment.tv_sec + moment.tv_nsec * 1e-9;
}

static text make_reply(const char *status, char *body) {
    text made;
    made.size = (size_t)asprintf(&made.data,
        "HTTP/1.1 %s\r\ncontent-type: application/json\r\nx-request-id: req-0123456789\r\n"
        "content-length: %zu\r\n\r\n%s", status, strlen(body), body);
    free(body);
    return made;
}

static text make_event(char *data) {
    text made;
    made.size = (size_t)asprintf(&made.data, "%zx\r\ndata: %s\n\n\r\n", strlen(data) + 8, data);
    free(data);
    return made;
}

#define FORMAT(into, ...) do { if (asprintf(&(into), __VA_ARGS__) < 0) exit(1); } while (0)

static void add_delta(const char *delta, const char *finish) {
    char *data;
    FORMAT(data, "%s{\"index\":0,\"delta\":%s,\"logprobs\":null,\"finish_reason\":%s}]}", START,
           delta, finish);
    events[event_count++] = make_event(data);
}

static void build(void) {
    char *data, *delta;
    FORMAT(data,
        "{\"id\":\"chatcmpl-0001\",\"object\":\"chat.completion\",\"created\":1760000000,"
        "\"model\":\"stub\",\"choices\":[{\"index\":0,\"message\":{\"role\":\"assistant\","
        "\"content\":null,\"refusal\":null,\"annotations\":[],\"tool_calls\":[{\"id\":\"call_0001\","
        "\"type\":\"function\",\"function\":{\"name\":\"create_ticket\",\"arguments\":\"%s\"}}]},"
        "\"logprobs\":null,\"finish_reason\":\"tool_calls\"}],%s,\"service_tier\":\"default\","
        "\"system_fingerprint\":\"fp_0\"}", ARGUMENTS, USAGE);
    whole = make_reply("200 OK", data);
    failure = make_reply("500 Internal Server Error",
        strdup("{\"error\":{\"message\":\"broken\",\"type\":\"server_error\",\"code\":null}}"));
    add_delta("{\"role\":\"assistant\",\"content\":null}", "null");
    add_delta("{\"tool_calls\":[{\"index\":0,\"id\":\"call_0001\",\"type\":\"function\","
              "\"function\":{\"name\":\"create_ticket\",\"arguments\":\"\"}}]}", "null");
    size_t size = sizeof ARGUMENTS - 1, start = 0;
    for (size_t i = 1; i <= PIECES; i++) {
        size_t end = size * i / PIECES;
        if (end < size && ARGUMENTS[end - 1] == '\\') end++; /* an escape stays whole */
        FORMAT(delta, "{\"tool_calls\":[{\"index\":0,\"function\":{\"arguments\":\"%.*s\"}}]}",
               (int)(end - start), ARGUMENTS + start);
        add_delta(delta, "null");
        free(delta);
        start = end;
    }
    add_delta("{}", "\"tool_calls\"");
    FORMAT(data, "%s],%s}", START, USAGE);
    events[event_count++] = make_event(data);
    events[event_count++] = (text){"e\r\ndata: [DONE]\n\n\r\n0\r\n\r\n", 24};
    FORMAT(data, "%s{\"index\":0,\"delta\":{\"content\":\"some words \"},\"logprobs\":null,"
                 "\"finish_reason\":null}]}", START);
    text_event = make_event(data);
    FORMAT(data, "%s{\"index\":0,\"delta\":{},\"logprobs\":null,\"finish_reason\":\"stop\"}]}", START);
    text finish = make_event(data);
    text_end.size = (size_t)asprintf(&text_end.data, "%s%s", finish.data, events[event_count - 1].data);
}

static void watch(int fd, unsigned wanted) {
    struct epoll_event event = {.events = wanted, .data.fd = fd};
    epoll_ctl(poller, EPOLL_CTL_MOD, fd, &event);
}

static void drop(int fd) {
    connection *peer = &connections[fd];
    if (!peer->open) return;
    for (int i = 0; i < streams; i++)
        if (streaming[i] == fd) { streaming[i] = streaming[--streams]; break; }
    peer->open = 0;
    peer->in.size = peer->out.size = peer->sent = 0;
    open_count--;
    close(fd);
}

static void append(text *kept, const char *data, size_t size) {
    kept->data = realloc(kept->data, kept->size + size + 1);
    memcpy(kept->data + kept->size, data, size);
    kept->size += size;
    kept->data[kept->size] = 0;
}

static void put(int fd, const char *data, size_t size) {
    connection *peer = &connections[fd];
    if (!peer->open) return;
    if (!peer->out.size) {
        ssize_t taken = send(fd, data, size, MSG_NOSIGNAL);
        if (taken < 0 && errno != EAGAIN) { drop(fd); return; }
        if (taken > 0) { data += taken; size -= (size_t)taken; }
        if (!size) return;
        watch(fd, EPOLLIN | EPOLLOUT);
    }
    append(&peer->out, data, size);
}

static void put_waiting(int fd) {
    connection *peer = &connections[fd];
    ssize_t taken = send(fd, peer->out.data + peer->sent, peer->out.size - peer->sent, MSG_NOSIGNAL);
    if (taken < 0 && errno != EAGAIN) { drop(fd); return; }
    if (taken > 0) peer->sent += (size_t)taken;
    if (peer->sent == peer->out.size) { peer->sent = peer->out.size = 0; watch(fd, EPOLLIN); }
}

static void put_event(int fd, int number, int last) {
    int is_text = last > event_count;
    text event = is_text ? (number + 1 == last ? text_end : text_event) : events[number];
    put(fd, event.data, event.size);
}

static void answer(int fd, const char *head, const char *body) {
    if (head[0] == 'G') {
        char *data;
        FORMAT(data, "{\"requests\":%ld,\"connections\":%d,\"object\":\"list\",\"data\":[{\"id\":\"stub\","
                     "\"object\":\"model\",\"created\":0,\"owned_by\":\"stub\"}]}", requests, open_count);
        text made = make_reply("200 OK", data);
        put(fd, made.data, made.size);
        free(made.data);
        return;
    }
    requests++;
    const char *model = strstr(body, "\"model\":");
    model = model ? strchr(model + 8, '"') : NULL;
    model = model ? model + 1 : "";
    if (!strncmp(model, "hang", 4)) return;
    if (!strncmp(model, "broken", 6)) { put(fd, failure.data, failure.size); return; }
    if (!strstr(body, "\"stream\":true") && !strstr(body, "\"stream\": true")) {
        put(fd, whole.data, whole.size);
        return;
    }
    connection *peer = &connections[fd];
    int count = event_count, step_ms = strncmp(model, "paced", 5) ? 0 : 5;
    if (!strncmp(model, "text-", 5)) {
        sscanf(model, "text-%d-%d", &count, &step_ms);
        if (count <= event_count) count = event_count + 1;
    }
    put(fd, HEAD, sizeof HEAD - 1);
    if (!strncmp(model, "cut", 3)) {
        for (int i = 0; i < 20; i++) put_event(fd, i, count);
        drop(fd);
        return;
    }
    if (step_ms) {
        peer->next = 0; peer->last = count; peer->step = step_ms / 1000.0;
        peer->due = now() + peer->step;
        streaming[streams++] = fd;
        return;
    }
    for (int i = 0; i < count && peer->open; i++) put_event(fd, i, count);
}

/* Return how many bytes a whole request at the start has; 0 is too few. */
static size_t take_request(int fd, char *data, size_t size) {
    char *end = memmem(data, size, "\r\n\r\n", 4);
    if (!end) return 0;
    size_t head = (size_t)(end - data) + 4, length = 0;
    char *field = strcasestr(data, "\r\ncontent-length:");
    if (field && field < end) length = strtoul(field + 17, NULL, 10);
    if (size < head + length) return 0;
    char behind = data[head + length];
    data[head + length] = 0;
    answer(fd, data, data + head);
    data[head + length] = behind;
    return head + length;
}

static void take(int fd) {
    static char buffer[1 << 18];
    connection *peer = &connections[fd];
    ssize_t size = recv(fd, buffer, sizeof buffer, 0);
    if (size <= 0) { if (size == 0 || errno != EAGAIN) drop(fd); return; }
    append(&peer->in, buffer, (size_t)size);
    size_t used;
    while (peer->open && peer->in.size && (used = take_request(fd, peer->in.data, peer->in.size))) {
        if (!peer->open) return;
        peer->in.size -= used;
        memmove(peer->in.data, peer->in.data + used, peer->in.size + 1);
    }
}

static void put_due(void) {
    double moment = now();
    for (int i = streams - 1; i >= 0; i--) {
        int fd = streaming[i];
        connection *peer = &connections[fd];
        while (peer->open && peer->due <= moment) {
            peer->due += peer->step;
            put_event(fd, peer->next, peer->last);
            if (++peer->next < peer->last || !peer->open) continue;
            streaming[i] = streaming[--streams];
            break;
        }
    }
}

int main(int count, char **given) {
    int one = 1, listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    struct sockaddr_in place = {.sin_family = AF_INET};
    if (count != 2) { fprintf(stderr, "usage: stub PORT\n"); return 2; }
    place.sin_port = htons((unsigned short)atoi(given[1]));
    place.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (bind(listener, (void *)&place, sizeof place) || listen(listener, 4096)) { perror("stub"); return 1; }
    signal(SIGPIPE, SIG_IGN);
    build();
    poller = epoll_create1(0);
    struct epoll_event event = {.events = EPOLLIN, .data.fd = listener}, ready[512];
    epoll_ctl(poller, EPOLL_CTL_ADD, listener, &event);
    for (;;) {
        int found = epoll_wait(poller, ready, 512, streams ? 1 : -1);
        for (int i = 0; i < found; i++) {
            int fd = ready[i].data.fd;
            if (fd == listener) {
                while ((fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK)) >= 0) {
                    if (fd >= MAX_FD) { close(fd); continue; }
                    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
                    connections[fd].open = 1;
                    open_count++;
                    event = (struct epoll_event){.events = EPOLLIN, .data.fd = fd};
                    epoll_ctl(poller, EPOLL_CTL_ADD, fd, &event);
                }
                continue;
            }
            if (connections[fd].open && ready[i].events & EPOLLOUT) put_waiting(fd);
            if (connections[fd].open && ready[i].events & (EPOLLIN | EPOLLHUP | EPOLLERR)) take(fd);
        }
        if (streams) put_due();
    }
}
