"""Reads metrics in the text format."""

from prometheus_client.parser import text_string_to_metric_families


def samples_of(text):
    """(name, labels by name) -> value, of all samples."""
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


class Samples:
    """The samples of one scrape, which are found by name and labels."""

    def __init__(self, text):
        self._samples = samples_of(text)
        self.names = {name for name, _ in self._samples}

    def value(self, name, **labels):
        """The value of a sample. None: it is not there."""
        return self._samples.get((name, frozenset(labels.items())))

    def of(self, name):
        """Labels -> value of all samples of a name."""
        return {labels: value for (each, labels), value in self._samples.items() if each == name}
