"""A lake in a bucket: the library's own object store against a server that checks signatures."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from solscope.errors import LakeError
from solscope.flows import query as flow
from solscope.model.lake import Answer
from tests.lake import campaigns as made
from tests.lake import s3server, workers

COUNT = "SELECT count(*) FROM kernel_launches"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[s3server.Server]:
    with s3server.running(tmp_path_factory.mktemp("s3")) as found:
        yield found


def ask(lake: str, sql: str, store: tuple[str, ...]) -> Answer:
    request = flow.QueryRequest(lake=lake, sql=sql, store=store)
    answer = flow.run(request, made.world()).value
    assert isinstance(answer, Answer)
    return answer


def test_a_campaign_is_published_to_a_bucket_once(tmp_path: Path, server: s3server.Server) -> None:
    lake = f"s3://{server.bucket}/once"
    made.campaign(tmp_path, "a")
    first = made.put(tmp_path, "a", lake, store=server.options()).value
    second = made.put(tmp_path, "a", lake, store=server.options()).value
    assert (first.written, second.written) == (True, False)
    assert ask(lake, COUNT, server.options()).rows == ((20,),)


def test_a_newer_publish_replaces_the_older_in_a_bucket(
    tmp_path: Path, server: s3server.Server
) -> None:
    lake = f"s3://{server.bucket}/twice"
    for launches in (20, 6):
        made.campaign(tmp_path, "a", launches=launches)
        made.put(tmp_path, "a", lake, store=server.options())
    assert ask(lake, COUNT, server.options()).rows == ((6,),)


def test_two_publishers_of_a_bucket_lose_nothing(tmp_path: Path, server: s3server.Server) -> None:
    lake, context = f"s3://{server.bucket}/raced", workers.processes()
    for slug in ("a", "b"):
        made.campaign(tmp_path, slug)
    publishers = [
        context.Process(target=workers.publish, args=(tmp_path, [slug], lake, server.options()))
        for slug in ("a", "b")
    ]
    for publisher in publishers:
        publisher.start()
    for publisher in publishers:
        publisher.join()
    assert [publisher.exitcode for publisher in publishers] == [0, 0]
    assert ask(lake, COUNT, server.options()).rows == ((40,),)


@pytest.mark.parametrize(
    "wrong", [{"AWS_SECRET_ACCESS_KEY": "wrong"}, {"AWS_ACCESS_KEY_ID": "AKIANOBODY0000000000"}]
)
def test_wrong_credentials_are_said_without_a_key_in_the_words(
    tmp_path: Path, server: s3server.Server, wrong: dict[str, str]
) -> None:
    lake = f"s3://{server.bucket}/guarded"
    made.campaign(tmp_path, "a")
    made.put(tmp_path, "a", lake, store=server.options())
    made.campaign(tmp_path, "b")
    with pytest.raises(LakeError, match="refused these credentials") as raised:
        made.put(tmp_path, "b", lake, store=server.options(**wrong))
    for secret in (server.store["AWS_ACCESS_KEY_ID"], *wrong.values()):
        assert secret not in str(raised.value)
    with pytest.raises(LakeError, match="refused these credentials"):
        ask(lake, COUNT, server.options(**wrong))
    assert ask(lake, COUNT, server.options()).rows == ((20,),)


def test_a_bucket_that_is_not_there_is_said(tmp_path: Path, server: s3server.Server) -> None:
    made.campaign(tmp_path, "a")
    with pytest.raises(LakeError, match="no such bucket"):
        made.put(tmp_path, "a", "s3://nowhere/lake", store=server.options())


def test_a_store_that_does_not_answer_is_said_at_once(
    tmp_path: Path, server: s3server.Server
) -> None:
    made.campaign(tmp_path, "a")
    deaf = server.options(AWS_ENDPOINT_URL="http://127.0.0.1:9")
    with pytest.raises(LakeError, match="cannot be reached"):
        made.put(tmp_path, "a", f"s3://{server.bucket}/lake", store=deaf)
