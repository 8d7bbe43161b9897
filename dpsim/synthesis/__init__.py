"""Publishing data: networks, attribute clusters, models of whole tables. No Ray here."""
